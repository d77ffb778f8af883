// Standard output as the property of a protocol.
//
// Invariants
// 1. Nothing but what is written here reaches stdout: whatever else prints in this program goes to stderr.
// 2. A reader that is gone is an error of this output, and does not end the program by itself.
import { Writable } from "node:stream";

/** Takes stdout for the protocol alone. Called before anything is loaded that might print. */
export function protocolOutput(): Writable {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  // `console` looks the method up each time it prints, so this is the one place to stand in its way.
  stdout.write = stderr.write.bind(stderr);
  // The command line leaves at once when nobody reads any more. Here something has to be brought to an end before.
  for (const stream of [stdout, stderr]) stream.removeAllListeners("error");
  stderr.on("error", () => {});
  const output = new Writable({
    decodeStrings: false,
    write: (piece: string | Uint8Array, _encoding, done) => void write(piece, done),
    writev: (pieces, done) => void write(Buffer.concat(pieces.map(({ chunk }) => bytesOf(chunk))), done),
  });
  stdout.on("error", (error) => output.destroy(error));
  return output;
}

const bytesOf = (chunk: string | Uint8Array): Uint8Array => (typeof chunk === "string" ? Buffer.from(chunk) : chunk);
