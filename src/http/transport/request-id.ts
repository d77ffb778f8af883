// Names for requests: unlike those of any other server, and cheap, since every request has one.
import { randomBytes } from "node:crypto";

/** They tell nothing but their order within one server, which whoever gets one may know. */
export function requestIds(): () => string {
  const mark = randomBytes(9).toString("base64url");
  let count = 0;
  return () => {
    count += 1;
    return `req_${mark}.${count.toString(36)}`;
  };
}
