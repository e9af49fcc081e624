--! fragment recording
-- What was done, or was to be done, with a dead letter, in the documented fields: all of them texts.

local function seconds()
  return string.format('%.3f', now / 1000)
end

local function record(action, result, entry)
  redis.call('XADD', replay_audit_key(), '*', 'ts', seconds(), 'action', action, 'actor', args.actor, 'dlq_key',
    dlq_key(), 'dlq_id', args.letter, 'source_id', args.source, 'target_stream', inbox_key(), 'target_message_id',
    entry, 'execution_id', args.run, 'tenant_id', args.tenant, 'schema_version', args.schema, 'result', result,
    'force', args.force ~= '' and '1' or '0')
end
