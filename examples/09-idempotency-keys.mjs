// Plain JavaScript. A key makes a prompt safe to send again: however often it arrives, it runs once.
import { openBelay } from "agent-belay";

const belay = await openBelay({
  store: ":memory:",
  agent: (turn) => `Done: ${turn.prompt.text}.`,
});
const session = await belay.createSession({ key: "customer-17" }); // the same key gives the same session

const one = session.prompt("send the invoice", { key: "invoice-2026-11" });
const two = session.prompt("send the invoice", { key: "invoice-2026-11" });
const [first, again] = await Promise.all([one.accepted, two.accepted]);
console.log(first.repeated, again.repeated, first.runId === again.runId);
console.log((await two.result()).text);
console.log((await session.runs()).length);

try {
  await session.prompt("send another invoice", { key: "invoice-2026-11" }).accepted;
} catch (error) {
  console.log(error.code, error.retryable);
}

// A key also names a run for a cancel, even before its acceptance was answered.
session.prompt("send a reminder", { key: "reminder" });
console.log((await session.cancelPrompt("reminder")).kind);
await belay.close();

// Prints:
//
//   false true true
//   Done: send the invoice.
//   1
//   conflict false
//   withdrawn
