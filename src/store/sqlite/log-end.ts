// The end of a session's log, in SQL.
/** A session's head: the end of its last append, or its snapshot if retention has removed all events. */
export const LOG_END = `COALESCE(
  (SELECT seq + count - 1 FROM event WHERE event.session = session.number ORDER BY seq DESC LIMIT 1),
  (SELECT seq FROM snapshot WHERE snapshot.session = session.number),
  0)`;

/** When the last append was recorded, or when the session was created if retention has removed all events. */
export const UPDATED_AT = `COALESCE(
  (SELECT at FROM event WHERE event.session = session.number ORDER BY seq DESC LIMIT 1),
  created_at)`;
