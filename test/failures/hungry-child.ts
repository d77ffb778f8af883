// A program whose tool takes more memory than there is: takes up what its file has, or begins it, and dies of it.
import { writeSync } from "node:fs";
import { openBelay } from "../../src/index.ts";

const [file = "", sessionId = ""] = process.argv.slice(2);
const say = (line: object): void => void writeSync(1, `${JSON.stringify(line)}\n`);
const held: object[] = [];

const belay = await openBelay({
  store: file,
  agent: async (turn) => {
    if (turn.prompt.text !== "eat") return "done";
    say({ begins: turn.attempt });
    const eat = (): never => {
      for (;;) held.push(Array.from({ length: 1000 }, (_, index) => ({ index })));
    };
    // One that may be repeated: any other would not be begun a second time.
    await turn.call("eat", null, eat, { idempotent: true });
    return "never";
  },
});
const session = sessionId === "" ? await belay.createSession() : belay.session(sessionId);
if (sessionId === "") {
  // The one that eats, and an innocent one behind it.
  const run = session.prompt("eat");
  const behind = session.prompt("behind it");
  await Promise.all([run.accepted, behind.accepted]);
  say({ session: session.id, run: run.id, behind: behind.id });
}
