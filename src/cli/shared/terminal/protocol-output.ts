// Reserves stdout for a protocol.
//
// Invariants
// 1. Only this output writes to stdout: all other prints of this program go to stderr.
// 2. A closed pipe is an error of this output, and does not end the program by itself.
import { Writable } from "node:stream";

/** Reserves stdout. Call it before loading any module that might print. */
export function protocolOutput(): Writable {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  // `console` looks up the method each time it prints, so replacing it here redirects every print.
  stdout.write = stderr.write.bind(stderr);
  // `main.ts` exits at once when the pipe is closed. A protocol has to shut down first.
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
