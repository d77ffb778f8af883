// A cancel in every phase of a run, on any transport, in either version.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SessionFixture } from "./session-fixture.ts";
import { belayOf, fieldsOf, textOf } from "./transcript.ts";

/** Counts the processes whose command line contains the mark, including a shell that is about to run `sleep`. */
const alive = (word: string): number =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(join("/proc", pid, "cmdline"), "utf8").includes(word);
      } catch {
        // The process has ended meanwhile.
        return false;
      }
    }).length;

export function cancelTests(fixture: SessionFixture): void {
  const isFirst = fixture.version === 1;

  describe("G27: a cancel", () => {
    test("of a queued prompt stops no other", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const first = session.prompt(`say one; gate ${g}`);
      const second = session.prompt("say two");
      const third = session.prompt("say three");
      await fixture.gates.reached(g);
      second.dispose();
      expect((await second.ended).stopReason).toBe("cancelled");
      if (!isFirst) await expect(second.answer).rejects.toMatchObject({ code: -32800 });
      fixture.gates.open(g);
      expect((await first.ended).stopReason).toBe("end_turn");
      expect((await third.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("onethree");
    });

    test("G7: of the session covers the running and queued prompts, and none sent after it", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const covered = [session.prompt(`say one; gate ${g}`), session.prompt("say two"), session.prompt("say three")];
      await fixture.gates.reached(g);
      const cancelled = session.cancel();
      const after = session.prompt("say after");
      await cancelled;
      const ends = await Promise.all(covered.map(({ ended }) => ended));
      expect(ends.map(({ stopReason }) => stopReason)).toEqual(["cancelled", "cancelled", "cancelled"]);
      expect((await after.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("oneafter");
    });

    test("that names a run of another session stops neither", async () => {
      const [here, there] = [await fixture.session(), await fixture.session()];
      const [g, h] = [fixture.gate(), fixture.gate()];
      const mine = here.prompt(`say here; gate ${g}`);
      const theirs = there.prompt(`say there; gate ${h}`);
      await fixture.gates.reached(g);
      await fixture.gates.reached(h);
      const explained = await there.request("_belay/session/explain");
      const runId = textOf(fieldsOf(explained.live).runId);
      expect(runId).toMatch(/^run_/);
      await here.cancel({ _meta: { belay: { runId } } });
      // Received after the cancel, so its answer shows the cancel's effect.
      const { live } = await there.request("_belay/session/explain");
      expect(fieldsOf(live).phase).toBe("running");
      fixture.gates.open(g);
      fixture.gates.open(h);
      expect((await mine.ended).stopReason).toBe("end_turn");
      expect((await theirs.ended).stopReason).toBe("end_turn");
    });

    test("before the first text", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`gate ${g}; say never`);
      await fixture.gates.reached(g);
      await session.cancel();
      expect((await asked.ended).stopReason).toBe("cancelled");
      expect(session.said).toBe("");
    });

    test("during the text: the text so far is kept", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`say half; gate ${g}; say never`);
      await session.sees("half");
      await session.cancel();
      expect((await asked.ended).stopReason).toBe("cancelled");
      expect(session.said).toBe("half");
    });

    test("during a call: the call gets its final status before the end", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`call read_file ${g}; say never`);
      await fixture.gates.reached(g);
      const call = await session.call("read_file");
      await session.cancel();
      expect((await asked.ended).stopReason).toBe("cancelled");
      const end = await session.callEnd(call);
      expect(end.status).toBe(isFirst ? "failed" : "cancelled");
      expect(belayOf(end).status).toBe("cancelled");
    });

    test("during a permission request withdraws it; a client that never answers blocks nothing", {
      meta: { id: "G13/cancel-withdraws-permission" },
    }, async () => {
      const session = await fixture.session("never");
      const asked = session.prompt("approve write_file; say never");
      const { transcript } = fixture.peer;
      const question = await transcript.when((said) =>
        said.find(
          ({ by, message }) =>
            by === "agent" &&
            message.method === "session/request_permission" &&
            message.params?.sessionId === session.id,
        ),
      );
      await session.cancel();
      expect((await asked.ended).stopReason).toBe("cancelled");
      const taken = transcript.said.filter(
        ({ by, message }) =>
          by === "agent" && message.method === "$/cancel_request" && message.params?.requestId === question.message.id,
      );
      expect(taken).toHaveLength(1);
      expect((await session.callEnd(await session.call("write_file"))).status).toBe(isFirst ? "failed" : "cancelled");
    });

    test("during a stop covers nothing that was sent after it", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const first = session.prompt(`say one; deaf ${g}`);
      await fixture.gates.reached(g);
      await session.cancel();
      const between = session.prompt("say between");
      await session.request("_belay/session/explain");
      fixture.gates.open(g);
      expect((await first.ended).stopReason).toBe("cancelled");
      expect((await between.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("onebetween");
    });

    test("of an idle session does nothing, and does not cover the next prompt", {
      meta: { id: "acp/idle-cancel-changes-nothing" },
    }, async () => {
      const session = await fixture.session();
      await session.cancel();
      expect((await session.prompt("say one").ended).stopReason).toBe("end_turn");
      await session.cancel();
      await session.cancel();
      expect((await session.prompt("say two").ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("onetwo");
    });

    test("of an unknown session does nothing", async () => {
      const session = await fixture.session();
      await fixture.peer.notify("session/cancel", { sessionId: "ses_nowhere" });
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("G10: that names its run stops no other, however late it arrives", {
      meta: { id: "G10/acp-stale-run-untouched" },
    }, async () => {
      const session = await fixture.session();
      const { runId } = await session.prompt("say one").ended;
      const g = fixture.gate();
      const next = session.prompt(`say two; gate ${g}`);
      await fixture.gates.reached(g);
      await session.cancel({ _meta: { belay: { runId } } });
      await session.request("_belay/session/explain");
      fixture.gates.open(g);
      expect((await next.ended).stopReason).toBe("end_turn");
    });

    test("that names the live run ends only this one, and the queue continues", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const live = session.prompt(`say one; gate ${g}`);
      const queued = session.prompt("say two");
      await session.sees("one");
      await session.cancel({ _meta: { belay: { runId: await session.run() } } });
      expect((await live.ended).stopReason).toBe("cancelled");
      expect((await queued.ended).stopReason).toBe("end_turn");
    });

    test("of a run by its id returns a receipt", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`say one; gate ${g}`);
      await session.sees("one");
      const runId = await session.run();
      expect(await session.request("_belay/run/cancel", { runId })).toMatchObject({ kind: "stopping" });
      expect((await asked.ended).stopReason).toBe("cancelled");
      expect(await session.request("_belay/run/cancel", { runId })).toMatchObject({ kind: "settled" });
      expect(await session.request("_belay/run/cancel", { runId: "run_nowhere" })).toMatchObject({ kind: "unknown" });
    });

    test("ends the whole process tree of a command before the end is reported", async () => {
      const session = await fixture.session();
      const mark = `87654.${process.pid}${Math.trunc(performance.now())}`;
      const asked = session.prompt(`sh echo up && (sleep ${mark} & sleep ${mark})`);
      await session.when((updates) => updates.find((one) => JSON.stringify(one).includes(isFirst ? "up\\n" : "dXAK")));
      expect(alive(mark)).toBeGreaterThan(0);
      await session.cancel();
      expect((await asked.ended).stopReason).toBe("cancelled");
      expect(alive(mark)).toBe(0);
    });
  });

  if (isFirst) {
    test("a $/cancel_request for the live prompt is a cancel with a result", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`say one; gate ${g}`);
      await fixture.gates.reached(g);
      asked.dispose();
      expect(await asked.answer).toMatchObject({ stopReason: "cancelled" });
    });
  }
}
