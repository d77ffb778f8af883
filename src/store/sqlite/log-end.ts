// Where the log of a session ends, in SQL.
/** A session's head: where its last append ends, or its snapshot if retention has taken all the rest. */
export const LOG_END = `COALESCE(
  (SELECT seq + count - 1 FROM event WHERE event.session = session.number ORDER BY seq DESC LIMIT 1),
  (SELECT seq FROM snapshot WHERE snapshot.session = session.number),
  0)`;

/** When the last append was recorded, or when the session was made if retention has taken all of them. */
export const UPDATED_AT = `COALESCE(
  (SELECT at FROM event WHERE event.session = session.number ORDER BY seq DESC LIMIT 1),
  created_at)`;
