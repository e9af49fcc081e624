import asyncio, signal
from plaita import app
from plaita.server.worker import Worker
async def main():
    s=app.read_settings(); app.import_all(s)
    st=app.open_store(s); stop=asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await Worker(st, app.worker_options(s), renewal_opener=app.store_opener(s)).run(stop)
    await st.close()
asyncio.run(main())
