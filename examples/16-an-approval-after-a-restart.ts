// An approval outlives the process that asked for it: the same question is answered in the next life, and acts once.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, openBelay } from "agent-belay";
import { modelAgent, tool } from "agent-belay/agent";
import { type ModelStep, scriptedModel } from "agent-belay/testing";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "belay-example-"));
const store = join(folder, "belay.db");

const pay = tool({
  description: "Pays a bill.",
  input: z.object({ euro: z.number() }),
  approval: true,
  execute: ({ euro }) => {
    console.log("paying");
    return `${euro} euro paid`;
  },
});
const agentThat = (...steps: ModelStep[]): Agent => modelAgent({ model: scriptedModel(steps), tools: { pay } });

const first = await openBelay({ store, agent: agentThat({ do: "call", name: "pay", input: { euro: 20 } }) });
const session = await first.createSession();
const run = session.prompt("Pay the bill");
for await (const event of run) if (event.type === "question.asked") break;
await first.close(); // or a crash: the question is in the log either way

// The model is not asked again for what it has asked for already; its next request has the result.
const second = await openBelay({ store, agent: agentThat({ do: "say", text: "It is paid." }) });
const [question] = await second.session(session.id).questions();
if (question?.about.kind !== "approval") throw new Error("It was asked before.");
console.log("still open:", question.about.name, question.about.input);
const receipt = await second.questions.allow(question.id);

const again = await second.run(run.id);
console.log(receipt.kind, "-", (await again.result()).text);
await second.close();
rmSync(folder, { recursive: true });

// Prints:
//
//   still open: pay { euro: 20 }
//   paying
//   recorded - It is paid.
