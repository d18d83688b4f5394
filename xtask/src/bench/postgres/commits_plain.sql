\set plan :client_id * 100 + random(1, 100)
\startpipeline
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT 1 FROM waypost_plans WHERE id = ANY (ARRAY['p' || :plan]) ORDER BY key FOR NO KEY UPDATE;
SELECT EXISTS (SELECT 1 FROM waypost_waits), s.id, c.schema, c.sequence FROM waypost_control c, waypost_store s WHERE c.id = 1;
SELECT key, version, replay_bytes, hash FROM waypost_plans WHERE id = 'p' || :plan;
\endpipeline
\startpipeline
UPDATE waypost_plans SET version = version + 1, updated_at = updated_at + 1, replay_bytes = replay_bytes + 100 WHERE key = :plan;
INSERT INTO waypost_log (plan, version, at, actor, command, nonce, events) SELECT key, version, updated_at, 'worker', 'start_task', 7, repeat('e', 70) FROM waypost_plans WHERE key = :plan;
COMMIT;
\endpipeline
