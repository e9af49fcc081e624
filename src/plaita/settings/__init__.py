"""Every setting, declared once: ``Settings`` holds values, ``load_settings`` reads them, ``SETTINGS`` lists them."""

from plaita.settings.current import current_settings, use_settings
from plaita.settings.declared import (
    EngineSettings,
    HttpSettings,
    SandboxSettings,
    Settings,
    WorkerSettings,
)
from plaita.settings.keeping import EventSettings, StoreSettings
from plaita.settings.load import SETTINGS, Declared, load_settings, unknown_variables
from plaita.settings.messages import MessageSettings
from plaita.settings.setting import Setting

__all__ = [
    "Settings",
    "StoreSettings",
    "WorkerSettings",
    "EngineSettings",
    "EventSettings",
    "HttpSettings",
    "MessageSettings",
    "SandboxSettings",
    "current_settings",
    "use_settings",
    "load_settings",
    "unknown_variables",
    "SETTINGS",
    "Declared",
    "Setting",
]
