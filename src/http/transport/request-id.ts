// Request ids: unique across servers, and cheap, because every request gets one.
import { randomBytes } from "node:crypto";

/** The ids reveal only their order within one server, which clients may know. */
export function requestIds(): () => string {
  const prefix = randomBytes(9).toString("base64url");
  let count = 0;
  return () => {
    count += 1;
    return `req_${prefix}.${count.toString(36)}`;
  };
}
