import { expect, test } from "vitest";
import { ControlError } from "../core/errors.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";
import { UNSENT_PROMPTS_MAX } from "./limits.ts";
import { type AcceptedIn, SendOrder, type Unanswered } from "./send-order.ts";

/** Requests that are sent by the order under test, and answered by the test. */
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
  const fail = async (name: string, error: unknown): Promise<void> => {
    answers.get(name)?.open(Promise.reject(error) as never);
    await settled();
  };
  /** A stop that records which prompts it must name. */
  const naming = (name: string) => {
    const noted: Unanswered[] = [];
    const stop = (named: readonly Unanswered[]): Promise<AcceptedIn> => {
      noted.push(...named);
      return send(name)();
    };
    return { named: noted as readonly Unanswered[], send: stop };
  };
  return { sent, send, answer, fail, naming };
}

test("the first prompt is sent in the tick of its call, the next one when that has a response", async () => {
  const { sent, send, answer } = line();
  const order = new SendOrder();
  void order.prompt({ sessionId: "ses_1", key: "a" }, send("a"));
  void order.prompt({ sessionId: "ses_1", key: "b" }, send("b"));
  void order.prompt({ sessionId: "ses_2", key: "x" }, send("x"));
  expect(sent).toEqual(["a", "x"]);
  await settled();
  expect(sent).toEqual(["a", "x"]);
  await answer("a");
  expect(sent).toEqual(["a", "x", "b"]);
});

test("G7: a cancel is sent at once, names the prompts before it, and holds back those after it", async () => {
  const { sent, send, answer, naming } = line();
  const order = new SendOrder();
  void order.prompt({ sessionId: "ses_1", key: "before" }, send("before"));
  const stop = naming("cancel");
  void order.stopAll("ses_1", stop.send);
  void order.prompt({ sessionId: "ses_1", key: "after" }, send("after"));
  expect(sent).toEqual(["before", "cancel"]);
  expect(stop.named).toEqual([{ sessionId: "ses_1", key: "before" }]);
  await answer("before");
  expect(sent).toEqual(["before", "cancel"]);
  await answer("cancel");
  expect(sent).toEqual(["before", "cancel", "after"]);
  expect(order.unanswered("ses_1").map(({ key }) => key)).toEqual(["after"]);
});

test("G7: a cancel of everything does so in every session, including unknown ones", async () => {
  const { sent, send, answer, naming } = line();
  const order = new SendOrder();
  void order.prompt({ key: "new" }, send("new"));
  void order.prompt({ sessionId: "ses_1", key: "a" }, send("a"));
  const stop = naming("all");
  void order.stopAll(undefined, stop.send);
  expect(stop.named).toEqual([{ key: "new" }, { sessionId: "ses_1", key: "a" }]);
  void order.prompt({ sessionId: "ses_2", key: "b" }, send("b"));
  void order.prompt({ key: "c" }, send("c"));
  await answer("a");
  expect(sent).toEqual(["new", "a", "all"]);
  await answer("all");
  expect(sent).toEqual(["new", "a", "all", "b", "c"]);
});

test("the number of waiting prompts is limited", async () => {
  const { send } = line();
  const order = new SendOrder();
  for (let count = 0; count < UNSENT_PROMPTS_MAX; count += 1)
    void order.prompt({ sessionId: "ses_1", key: `${count}` }, send(`${count}`));
  await expect(order.prompt({ sessionId: "ses_1", key: "more" }, send("more"))).rejects.toMatchObject({
    code: "overloaded",
  });
});

test("G7: the next stop names a prompt that failed without a response, and not a refused one", async () => {
  const { send, fail, answer, naming } = line();
  const order = new SendOrder();
  const told = { cause: { requestId: "req_1" } };
  for (const [name, error] of [
    ["refused", new ControlError("queue_full", "Full.", told)],
    ["proxy", new ControlError("invalid", "A page of HTML.")],
    ["busy", new ControlError("shutting_down", "Later.", told)],
    ["gone", new ControlError("disconnected", "Nothing there.")],
  ] as const) {
    order.prompt({ sessionId: "ses_1", key: name }, send(name)).catch(() => {});
    await fail(name, error);
  }
  const stop = naming("cancel");
  void order.stopAll("ses_1", stop.send);
  expect(stop.named.map(({ key }) => key)).toEqual(["proxy", "busy", "gone"]);
  await answer("cancel");
  expect(order.unanswered()).toEqual([]);
});
