import { describe, expect, it } from "vitest";
import { ControlError } from "../../../core/errors.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import { accepted, batch, created, refusedAs, SES } from "../../contract/facts.ts";
import { type Cell, packWritten, unpackBatches, type Written } from "./message.ts";
import { Outbox } from "./outbox.ts";

describe("the appends of one round of the event loop", () => {
  it("share one message, in order, and each gets its own result", async () => {
    const { outbox, messages, heads } = outboxTo((sessions) =>
      sessions.map((_, index): Written => ({ kind: index === 1 ? "moved" : "appended", head: index + 10 })),
    );
    const answers = await Promise.all([
      outbox.add(batch(SES, 0, [created(SES)])),
      outbox.add(batch("ses_b", 0, [created("ses_b")])),
      outbox.add(batch(SES, 1, [accepted("run_1")])),
    ]);
    expect(messages).toEqual([[SES, "ses_b", SES]]);
    expect(answers.map((answer) => answer.kind)).toEqual(["appended", "moved", "appended"]);
    expect(heads).toEqual([
      [SES, 10],
      ["ses_b", 11],
      [SES, 12],
    ]);
  });

  it("are sent at once when flushed, and not again when the round ends", async () => {
    const { outbox, messages } = outboxTo((sessions) => sessions.map((): Written => ({ kind: "appended", head: 1 })));
    const first = outbox.add(batch(SES, 0, [created(SES)]));
    outbox.flush();
    expect(messages).toHaveLength(1);
    await first;
    await outbox.add(batch("ses_b", 0, [created("ses_b")]));
    expect(messages).toEqual([[SES], ["ses_b"]]);
  });

  it("do not include one that cannot be encoded", async () => {
    const { outbox, messages } = outboxTo((sessions) => sessions.map((): Written => ({ kind: "appended", head: 1 })));
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const bad = outbox.add(batch(SES, 0, [{ ...created(SES), ...cyclic }]));
    const good = outbox.add(batch("ses_b", 0, [created("ses_b")]));
    await expect(bad).rejects.toThrow("circular");
    expect(await good).toEqual({ kind: "appended", head: 1 });
    expect(messages).toEqual([["ses_b"]]);
  });

  it("send no message if none of them can be encoded", async () => {
    const { outbox, messages } = outboxTo(() => []);
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    await expect(outbox.add(batch(SES, 0, [{ ...created(SES), ...cyclic }]))).rejects.toThrow("circular");
    outbox.flush();
    expect(messages).toEqual([]);
  });
});

describe("an idle writer", () => {
  it("gets the first appends of a long round before the round is over, and the rest while it works", async () => {
    const { outbox, messages } = outboxTo((sessions) => sessions.map((): Written => ({ kind: "appended", head: 1 })));
    const names = Array.from({ length: 20 }, (_, index) => `ses_${index}` as const);
    const answers = names.map((name) => outbox.add(batch(name, 0, [created(name)])));
    expect(messages.map((sessions) => sessions.length)).toEqual([12]);
    await Promise.all(answers);
    expect(messages.flat()).toEqual(names);
    expect(messages.map((sessions) => sessions.length)).toEqual([12, 8]);
  });
});

describe("a busy writer", () => {
  it("gets the next message only after its response, with everything that was queued", async () => {
    const { outbox, messages, hold } = outboxTo((sessions) => sessions.map(() => ({ kind: "appended", head: 1 })));
    const release = hold();
    const first = outbox.add(batch(SES, 0, [created(SES)]));
    outbox.flush();
    const names = Array.from({ length: 30 }, (_, index) => `ses_${index}` as const);
    const later: Promise<unknown>[] = [];
    for (const name of names) {
      later.push(outbox.add(batch(name, 0, [created(name)])));
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(messages).toEqual([[SES]]);
    release();
    await Promise.all([first, ...later]);
    expect(messages).toEqual([[SES], names]);
  });
});

describe("an append with an unknown result", () => {
  it("makes its session's head unknown, and no other", async () => {
    const { outbox, heads } = outboxTo(() => [
      { kind: "failed", code: "unavailable", message: "?" },
      { kind: "failed", code: "store_full", message: "full" },
    ]);
    const asked = [outbox.add(batch(SES, 0, [created(SES)])), outbox.add(batch("ses_b", 0, [created("ses_b")]))];
    await Promise.all([refusedAs("unavailable", asked[0] ?? never()), refusedAs("store_full", asked[1] ?? never())]);
    expect(heads).toEqual([[SES, undefined]]);
  });

  it("is every one that was sent to a writer that died", async () => {
    const { outbox, heads } = outboxTo(() => {
      throw new ControlError("unavailable", "The writer has died.");
    });
    await refusedAs("unavailable", outbox.add(batch(SES, 0, [created(SES)])));
    expect(heads).toEqual([[SES, undefined]]);
  });
});

function outboxTo(write: (sessions: readonly SessionId[]) => readonly Written[]) {
  const messages: (readonly SessionId[])[] = [];
  const heads: [SessionId, Seq | undefined][] = [];
  let held: Promise<void> | undefined;
  const request = async (_: string, cells: readonly Cell[]): Promise<readonly Cell[]> => {
    const sessions = unpackBatches(cells).map(({ session }) => session);
    messages.push(sessions);
    await held;
    const answer: Cell[] = [];
    for (const one of write(sessions)) packWritten(answer, one);
    return answer;
  };
  const outbox = new Outbox({ request }, (session, head) => heads.push([session, head]));
  /** No response is sent until the returned function is called. */
  const hold = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { outbox, messages, heads, hold };
}

const never = (): Promise<never> => Promise.reject(new Error("no such append"));
