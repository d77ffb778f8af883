// The host has a say in every call, hears how things end, and sets a limit to how long a run may take.
import { setTimeout as sleep } from "node:timers/promises";
import { openBelay } from "agent-belay";

const belay = await openBelay({
  store: ":memory:",
  runLimitMs: 500,
  hooks: {
    beforeCall: ({ name, input }) => {
      if (name === "drop") return { kind: "deny", note: "Tables are not dropped here." };
      if (name === "select") return { kind: "allow", input: `${input} limit 10` };
      if (name === "audit") throw new Error("The rules could not be read.");
      return undefined; // no opinion: the call begins
    },
    onCancel: ({ reason }) => console.log("cancelled:", reason),
    onOutcome: ({ outcome }) => console.log("outcome:", outcome.kind),
  },
  onNotice: (notice) => console.log("for the operator:", notice.type, "message" in notice && notice.message),
  agent: async (turn) => {
    for (const [name, sql] of [
      ["select", "select * from users"],
      ["drop", "drop table users"],
      ["audit", "select 1"],
    ] as const) {
      const result = await turn.call(name, sql, ({ input }) => `ran ${input}`);
      console.log(result.kind === "completed" ? result.value : result.kind === "failed" && result.message);
    }
    await turn.call("sleep", null, ({ signal }) => sleep(60_000, undefined, { signal }));
  },
});
const session = await belay.createSession();
await session.prompt("Look at the database").outcome;
await belay.close();

// Prints:
//
//   ran select * from users limit 10
//   Not carried out: a rule of the host forbids it. Tables are not dropped here.
//   for the operator: hook The rules could not be read.
//   It was not carried out: the host's hook before calls failed. The rules could not be read.
//   cancelled: { kind: 'timeout', limitMs: 500 }
//   outcome: cancelled
