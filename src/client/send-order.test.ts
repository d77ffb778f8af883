import { expect, test } from "vitest";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";
import { UNSENT_PROMPTS_MAX } from "./limits.ts";
import { type AcceptedIn, SendOrder } from "./send-order.ts";

/** Requests that leave when the order says so and are answered when the test says so. */
function line() {
  const sent: string[] = [];
  const answers = new Map<string, Gate<AcceptedIn>>();
  const send = (name: string) => (): Promise<AcceptedIn> => {
    sent.push(name);
    const answer = new Gate<AcceptedIn>();
    answers.set(name, answer);
    return answer.opened;
  };
  const answer = async (name: string): Promise<void> => {
    const runId = `run_${name}` as const;
    const accepted = { kind: "accepted", runId, sessionId: "ses_1", seq: 1 } as const;
    answers.get(name)?.open({ ...accepted, joined: "queue", ahead: 0, repeated: false });
    await settled();
  };
  return { sent, send, answer };
}

test("the first prompt leaves in the tick of its call, the next one when that is answered", async () => {
  const { sent, send, answer } = line();
  const order = new SendOrder();
  void order.prompt("ses_1", send("a"));
  void order.prompt("ses_1", send("b"));
  void order.prompt("ses_2", send("x"));
  expect(sent).toEqual(["a", "x"]);
  await settled();
  expect(sent).toEqual(["a", "x"]);
  await answer("a");
  expect(sent).toEqual(["a", "x", "b"]);
});

test("G7: a cancel leaves at once, names what is before it, and holds back what is behind it", async () => {
  const { sent, send, answer } = line();
  const order = new SendOrder();
  const before = order.prompt("ses_1", send("before"));
  const { overtaken } = order.cancel("ses_1", "key", send("cancel"));
  void order.prompt("ses_1", send("after"));
  expect(sent).toEqual(["before", "cancel"]);
  expect(overtaken.map(({ accepted }) => accepted)).toEqual([before]);
  await answer("before");
  expect(sent).toEqual(["before", "cancel"]);
  await answer("cancel");
  expect(sent).toEqual(["before", "cancel", "after"]);
  expect(order.cancel("ses_1", "key", send("again")).overtaken).toEqual([]);
  expect(order.cancel("ses_1", "other", send("another")).overtaken).toHaveLength(1);
});

test("G7: a cancel of everything does so in every session, also in those that are not known yet", async () => {
  const { sent, send, answer } = line();
  const order = new SendOrder();
  void order.prompt(undefined, send("new"));
  void order.prompt("ses_1", send("a"));
  const { overtaken } = order.cancelAll(send("all"));
  expect(overtaken).toHaveLength(2);
  void order.prompt("ses_2", send("b"));
  void order.prompt(undefined, send("c"));
  await answer("a");
  expect(sent).toEqual(["new", "a", "all"]);
  await answer("all");
  expect(sent).toEqual(["new", "a", "all", "b", "c"]);
});

test("prompts that wait are bounded", async () => {
  const { send } = line();
  const order = new SendOrder();
  for (let count = 0; count < UNSENT_PROMPTS_MAX; count += 1) void order.prompt("ses_1", send(`${count}`));
  await expect(order.prompt("ses_1", send("more"))).rejects.toMatchObject({ code: "overloaded" });
});
