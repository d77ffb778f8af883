// A tool that people must approve. The call waits; it is allowed once, denied, or allowed for the whole session.
import { openBelay } from "agent-belay";
import { modelAgent, tool } from "agent-belay/agent";
import { scriptedModel } from "agent-belay/testing";
import { z } from "zod";

const mail = tool({
  description: "Sends a mail.",
  input: z.object({ to: z.string() }),
  approval: ({ to }) => !to.endsWith("@example.com") && { note: "This leaves the company." },
  execute: ({ to }) => {
    console.log(`-> sent to ${to}`);
  },
});
const mails = ["me@example.com", "ann@example.org", "bob@example.org", "cy@example.org", "dan@example.org"];
const model = scriptedModel(...mails.map((to) => [{ do: "call", name: "mail", input: { to } } as const]), [
  { do: "say", text: "Four sent." },
]);
const belay = await openBelay({ store: ":memory:", agent: modelAgent({ model, tools: { mail } }) });
const session = await belay.createSession();

const answers = [
  (id: string, digest: string) => belay.questions.allow(id, { by: "Alice", digest }),
  (id: string, digest: string) => belay.questions.deny(id, { by: "Alice", note: "he has left", digest }),
  (id: string, digest: string) => belay.questions.allow(id, { by: "Alice", digest, remember: "session" }),
];
const run = session.prompt("Tell everybody");
for await (const event of run) {
  if (event.type === "question.asked" && event.about.kind === "approval") {
    const { name, input, note, digest } = event.about;
    console.log(`May I? ${name} ${JSON.stringify(input)} ${note}`);
    // With the digest of what was shown, an answer can only be about these bytes.
    await answers.shift()?.(event.questionId, digest);
  }
  if (event.type === "call.settled" && event.outcome.kind === "failed") console.log(event.outcome);
}
console.log((await run.result()).text, (await session.questions()).length, "open");
await belay.close();

// Prints:
//
//   -> sent to me@example.com
//   May I? mail {"to":"ann@example.org"} This leaves the company.
//   -> sent to ann@example.org
//   May I? mail {"to":"bob@example.org"} This leaves the company.
//   {
//     kind: 'failed',
//     code: 'denied',
//     message: 'Not carried out: denied by Alice: he has left'
//   }
//   May I? mail {"to":"cy@example.org"} This leaves the company.
//   -> sent to cy@example.org
//   -> sent to dan@example.org
//   Four sent. 0 open
