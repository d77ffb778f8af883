// An agent over a model, with a tool. Models of the AI SDK's providers fit as they are; this one needs no key.
import { openBelay } from "agent-belay";
import { modelAgent, tool } from "agent-belay/agent";
import { scriptedModel } from "agent-belay/testing";
import { z } from "zod";

const weather = tool({
  description: "The weather in a city, now.",
  input: z.object({ city: z.string() }),
  execute: ({ city }, { progress }) => {
    progress(`looking out of a window in ${city}`); // live only, for whoever follows
    return { sky: "clear", celsius: 21 };
  },
});
const model = scriptedModel(
  [{ do: "call", name: "weather", input: { city: "Lisbon" } }],
  [{ do: "say", text: "Clear, and 21 degrees." }],
);
const agent = modelAgent({ model, system: "Be brief.", tools: { weather } });
const belay = await openBelay({ store: ":memory:", agent });
const session = await belay.createSession();

const run = session.prompt("How is the weather in Lisbon?");
for await (const event of run) {
  if (event.type === "call.requested") console.log(event.name, event.input);
  if (event.type === "progress") console.log(event.data);
  if (event.type === "call.settled") console.log(event.outcome.kind, event.result);
  if (event.type === "delta") console.log(event.text);
  if (event.type === "turn.settled") console.log(event.finish, event.usage);
}
console.log((await run.outcome).kind);
await belay.close();

// Prints:
//
//   calls { inputTokens: 10, outputTokens: 5, estimated: false }
//   weather { city: 'Lisbon' }
//   looking out of a window in Lisbon
//   completed { sky: 'clear', celsius: 21 }
//   Clear, and 21 degrees.
//   stop { inputTokens: 10, outputTokens: 5, estimated: false }
//   completed
