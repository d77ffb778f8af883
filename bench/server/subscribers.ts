// Many subscribers in a process of their own, on bare sockets: their cost must not be taken for the server's.
//
// argv: one JSON text { port, token, paths }. Prints "ready" when every subscriber has its first bytes, then, when all
// streams have ended or on a line on stdin, one line of JSON.
import { connect, type Socket } from "node:net";
import { ascending, percentile, round } from "../report.ts";

interface Wish {
  readonly port: number;
  readonly token: string;
  readonly paths: readonly string[];
  /** `count`: only bytes. `delays`: from the moment an event was recorded to the moment it arrived, by its `at`. */
  readonly measure: "count" | "delays";
}

const wish: Wish = JSON.parse(process.argv[2] ?? "");
const delays: number[] = [];
let bytes = 0;
let events = 0;
let ready = 0;
let ended = 0;
let measuring = wish.measure === "count";

for (const path of wish.paths) subscribe(path);

function subscribe(path: string): void {
  const socket: Socket = connect(wish.port, "127.0.0.1");
  const head = [`GET ${path} HTTP/1.1`, `Host: 127.0.0.1:${wish.port}`, `Authorization: Bearer ${wish.token}`];
  socket.write(`${[...head, "Accept: text/event-stream", "Connection: close"].join("\r\n")}\r\n\r\n`);
  let first = true;
  socket.on("data", (chunk) => {
    if (first) began(chunk);
    first = false;
    bytes += chunk.length;
    if (wish.measure === "delays") note(chunk.toString("latin1"));
  });
  socket.on("error", (error) => fail(error.message));
  socket.on("close", () => {
    ended += 1;
    if (ended === wish.paths.length) finish();
  });
}

function began(chunk: Buffer): void {
  if (!chunk.toString("latin1").startsWith("HTTP/1.1 200")) fail(chunk.toString("latin1").slice(0, 300));
  ready += 1;
  if (ready === wish.paths.length) process.stdout.write("ready\n");
}

function note(text: string): void {
  const now = Date.now();
  for (const [, at] of text.matchAll(/"at":(\d+)\}/g)) {
    events += 1;
    if (measuring) delays.push(now - Number(at));
  }
}

function finish(): void {
  const sorted = ascending(delays);
  const told = { bytes, events, measured: sorted.length, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
  process.stdout.write(`${JSON.stringify({ ...told, max: round(sorted.at(-1) ?? 0) })}\n`, () => process.exit(0));
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

// "measure" begins to count delays, "stop" ends it all.
process.stdin.on("data", (chunk) => {
  if (String(chunk).includes("measure")) measuring = true;
  if (String(chunk).includes("stop")) finish();
});
