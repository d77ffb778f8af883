// A program that closes on signals, with an agent that listens or one that does not.
import { closeOnSignals, openBelay } from "../src/index.ts";

const [file, manner] = [process.argv[2] ?? "", process.argv[3]];
const belay = await openBelay({
  store: file,
  graceMs: manner === "deaf" ? 60_000 : 100,
  agent: async (turn) => {
    turn.emit("so far");
    process.stdout.write(`live ${turn.runId}\n`);
    await new Promise((_, reject) => {
      if (manner !== "deaf") turn.signal.addEventListener("abort", () => reject(turn.signal.reason));
    });
  },
});
closeOnSignals(belay, { limitMs: 30_000 });
if (manner === "deaf") process.on("SIGTERM", () => process.stdout.write("closing\n"));
// The program's own handler, which takes longer than Belay.
if (manner === "drains") {
  process.once("SIGTERM", () => {
    void belay.closed
      .then(() => new Promise((resolve) => setImmediate(resolve)))
      .then(() => {
        process.stdout.write("drained\n");
        process.exit(0);
      });
  });
}
const session = await belay.createSession();
await session.prompt("work").outcome.catch(() => {});
// Keeps the program alive as a server's socket would.
setInterval(() => {}, 2 ** 30);
