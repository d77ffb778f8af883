// Run by shortage.test.ts with few open files allowed: starts commands while there is not one left, and says what came.
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/ports/clock.ts";
import { openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";

const taken: number[] = [];
/** Leaves so many: a start writes down what it is about to do before it needs files for the command itself. */
function takeAllBut(left: number): void {
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    for (const file of taken.splice(-left, left)) closeSync(file);
  }
}
function giveBack(): void {
  for (const file of taken.splice(0)) closeSync(file);
}

/** Each pause before another attempt is over at once, and may be what the files are given back in. */
let pauses = 0;
let onPause = (): void => {};
let counting = false;
const clock: Clock = {
  ...systemClock,
  after: (ms, call, kind) => {
    if (!counting || ms > 1_000) return systemClock.after(ms, call, kind);
    pauses += 1;
    onPause();
    return systemClock.after(0, call, kind);
  },
};

/** Enough for the ledger, too few for the streams of a command. */
const FEW = 3;

const dir = mkdtempSync(join(tmpdir(), "belay-shortage-"));
const spawner = await openSpawner({ dir, workspace: dir, clock, mechanism: "group" });
let ids = 0;
async function attempt(): Promise<object> {
  ids += 1;
  try {
    const child = await spawner.spawn({ id: `proc_short.${ids}`, sessionId: "ses_short", command: "echo fine" });
    counting = false;
    const { code } = await child.ended;
    return { code, pauses };
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string };
    return { refused: code, message, pauses };
  } finally {
    counting = false;
    pauses = 0;
  }
}

// The first one warms everything up that is opened once.
const said: object[] = [await attempt()];
takeAllBut(FEW);
counting = true;
onPause = giveBack;
said.push(await attempt());
for (const left of [FEW, 0]) {
  takeAllBut(left);
  counting = true;
  onPause = () => {};
  const refused = await attempt();
  giveBack();
  said.push(refused);
}
said.push(await attempt(), { ledger: readdirSync(join(dir, "ledger")) });
await spawner.close();
rmSync(dir, { recursive: true, force: true });
console.log(JSON.stringify(said));
