// Stories about prompts, their keys and the queue.
import { inSession, type Story, story } from "./story.ts";

export const QUEUE_STORIES: readonly Story[] = [
  inSession("a prompt", async (stage) => {
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("a prompt that fails", async (stage) => {
    stage.prompt("fail");
    await stage.calm();
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("a prompt that is heard as it speaks", async (stage) => {
    const run = stage.prompt("talk");
    stage.hold("text", run.text());
    await stage.pass(200);
    stage.gates.open("talk");
    await stage.calm();
    await stage.pass(200);
  }),
  story("a prompt in a session of its own, twice", async (stage) => {
    stage.begin("say", "k");
    await stage.calm();
    stage.begin("say", "k");
    await stage.calm();
  }),
  inSession("the same key twice in one tick", async (stage) => {
    stage.prompt("say", { key: "k" });
    stage.prompt("say", { key: "k" });
    await stage.calm();
  }),
  inSession("the same key after the end", async (stage) => {
    stage.prompt("say", { key: "k" });
    await stage.calm();
    stage.prompt("say", { key: "k" });
    await stage.calm();
  }),
  inSession("the same key for something else", async (stage) => {
    stage.prompt("say", { key: "k" });
    await stage.calm();
    stage.prompt("say else", { key: "k" });
    await stage.calm();
  }),
  inSession("a queue of three", async (stage) => {
    stage.prompt("wait 1");
    stage.prompt("wait 2");
    stage.prompt("say 3");
    await stage.calm();
    stage.gates.open("wait");
    await stage.calm();
  }),
  inSession("a steer that is taken in", async (stage) => {
    stage.prompt("steerable");
    await stage.calm();
    stage.prompt("say this too", { delivery: "steer" });
    await stage.calm();
    stage.gates.open("steer");
    await stage.calm();
  }),
  inSession("a steer that comes too late", async (stage) => {
    stage.prompt("wait");
    await stage.calm();
    stage.prompt("say", { delivery: "steer" });
    stage.gates.open("wait");
    await stage.calm();
    stage.prompt("say", { delivery: "steer" });
    await stage.calm();
  }),
  inSession("an interrupt", async (stage) => {
    stage.prompt("wait");
    await stage.calm();
    stage.prompt("say", { delivery: "interrupt" });
    await stage.calm();
  }),
  inSession("an interrupt of somebody who is deaf", async (stage) => {
    stage.prompt("deaf");
    await stage.calm();
    stage.prompt("say", { delivery: "interrupt" });
    await stage.calm();
    await stage.pass(2_000);
  }),
  inSession("a prompt that would rather be refused", async (stage) => {
    stage.prompt("wait");
    stage.prompt("say", { delivery: "reject" });
    await stage.calm();
    stage.prompt("say", { delivery: "reject" });
    await stage.calm();
  }),
  inSession("a withdrawal", async (stage) => {
    stage.prompt("wait");
    const run = stage.prompt("say");
    await stage.calm();
    stage.change(stage.a.queue.withdraw(run.id, { reason: "no" }), "run.settled", {
      runId: run.id,
      outcome: WITHDRAWN,
    });
    await stage.calm();
  }),
  inSession("an edit", async (stage) => {
    stage.prompt("wait");
    const run = stage.prompt("say");
    await stage.calm();
    stage.change(stage.a.queue.edit(run.id, "say more"), "run.edited", { runId: run.id });
    await stage.calm();
  }),
  inSession("an edit with a key, twice", async (stage) => {
    stage.prompt("wait");
    const run = stage.prompt("say");
    await stage.calm();
    stage.change(stage.a.queue.edit(run.id, "say more", { key: "e" }), "run.edited", { runId: run.id });
    await stage.calm();
    stage.change(stage.a.queue.edit(run.id, "say more", { key: "e" }), "run.edited", { runId: run.id });
    await stage.calm();
  }),
  inSession("a move", async (stage) => {
    stage.prompt("wait");
    stage.prompt("say 1");
    const run = stage.prompt("say 2");
    await stage.calm();
    stage.change(stage.a.queue.move(run.id, "front"), "run.moved", { runId: run.id });
    await stage.calm();
  }),
  inSession("a queued run that becomes a steer", async (stage) => {
    stage.prompt("steerable");
    const run = stage.prompt("say");
    await stage.calm();
    stage.change(stage.a.queue.steer(run.id), "run.steered", { runId: run.id });
    await stage.calm();
    stage.gates.open("steer");
    await stage.calm();
  }),
  inSession("a note for the next turn", async (stage) => {
    stage.change(stage.a.post({ kind: "reminder", text: "mind" }), "inbox.added", {});
    await stage.calm();
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("a mode", async (stage) => {
    stage.change(stage.a.setMode("code"), "session.mode_set", { mode: "code" });
    await stage.calm();
    stage.prompt("say");
    await stage.calm();
  }),
  story(
    "two sessions and one place",
    async (stage) => {
      await stage.create();
      await stage.create("ses_b");
      stage.prompt("wait");
      stage.prompt("say", {}, "ses_b");
      stage.prompt("say");
      await stage.calm();
      stage.gates.open("wait");
      await stage.calm();
    },
    { liveRunsMax: 1 },
  ),
];

const WITHDRAWN = { kind: "cancelled", reason: { kind: "user", note: "no" } };
