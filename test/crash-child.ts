// A life that will be cut short: prompts, streams and calls on a real file until somebody kills it.
// Says on stdout what it was told, one JSON line each: what the next life must know.
import { appendFileSync } from "node:fs";
import { openBelay } from "../src/index.ts";

const [file, effects] = [process.argv[2] ?? "", process.argv[3] ?? ""];
const say = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};

const belay = await openBelay({
  store: file,
  agent: async (turn) => {
    turn.emit(`answer to ${turn.prompt.text}: `);
    // The effect is counted in a file, where a second execution would show.
    const made = await turn.call("effect", turn.runId, () => {
      appendFileSync(effects, `${turn.runId}\n`);
      return true;
    });
    if (turn.prompt.text.includes("long")) {
      for (let piece = 0; !turn.signal.aborted; piece += 1) {
        turn.emit(`${piece} `);
        if (piece === 0) say({ streaming: turn.runId });
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }
    return `done: ${made.kind}`;
  },
});

say({ ready: true });
for (let round = 0; ; round += 1) {
  const session = await belay.createSession();
  for (const text of ["short", "also short", "long"]) {
    const run = session.prompt(`${text} ${round}`, { key: `${text}-${round}` });
    void run.accepted.then(({ runId }) => say({ accepted: runId, session: session.id }));
    void run.outcome.then(
      (outcome) => say({ outcome: outcome.kind, run: run.id }),
      () => {},
    );
  }
  const stopped = session.prompt(`stopped ${round}`);
  void stopped.cancel().then((receipt) => say({ cancelled: stopped.id, receipt: receipt.kind }));
  await stopped.outcome;
}
