import { expect, test } from "vitest";
import { type Connected, connected, until } from "../../test/fixtures/connected-client.ts";
import type { AllSessionsEvent } from "../ports/control.ts";

const told = (cursor: string): string =>
  `id: ${cursor}\nevent: run.started\ndata: ${JSON.stringify({ cursor, sessionId: "ses_1", event: { seq: 1 } })}\n\n`;

function watching(house: Connected, after?: string): AllSessionsEvent[] {
  const heard: AllSessionsEvent[] = [];
  (async () => {
    for await (const one of house.client.events(after === undefined ? {} : { after })) heard.push(one);
  })().catch(() => undefined);
  return heard;
}

test("the whole house is watched from a cursor on, over cuts", {
  meta: { id: "G30/watch-resumes-by-cursor" },
}, async () => {
  await using house = await connected();
  const heard = watching(house, "c1");
  const first = (await house.server.next("GET /v1/events?after=c1")).stream();
  first.say(told("c2"));
  await until(() => heard.length === 1);
  await first.cut();
  await house.passPause();
  const second = (await house.server.next("GET /v1/events")).stream();
  expect(second.header("last-event-id")).toBe("c2");
  second.say('id: c9\nevent: missed\ndata: {"cursor":"c9"}\n\n').say(told("c10"));
  await until(() => heard.length === 3);
  expect(heard).toMatchObject([
    { type: "event", cursor: "c2", sessionId: "ses_1" },
    { type: "missed", cursor: "c9" },
    { type: "event", cursor: "c10" },
  ]);
});

test("where it begins is said once, and a cut right after it loses nothing", {
  meta: { id: "G30/start-cursor-survives-cut" },
}, async () => {
  await using house = await connected();
  const heard = watching(house);
  const here = 'id: c1\nevent: here\ndata: {"cursor":"c1"}\n\n';
  const first = (await house.server.next("GET /v1/events")).stream().say(here);
  await until(() => heard.length === 1);
  await first.cut();
  await house.passPause();
  const second = await house.server.next("GET /v1/events");
  expect(second.header("last-event-id")).toBe("c1");
  second.stream().say(here).say(told("c2"));
  await until(() => heard.length === 2);
  expect(heard).toMatchObject([
    { type: "here", cursor: "c1" },
    { type: "event", cursor: "c2" },
  ]);
});

test("a cut before the first cursor is told as something missed, not kept quiet", async () => {
  await using house = await connected();
  const heard = watching(house);
  await (await house.server.next("GET /v1/events")).stream().cut();
  await house.passPause();
  (await house.server.next("GET /v1/events")).stream().say(told("c5"));
  await until(() => heard.length === 2);
  expect(heard).toMatchObject([
    { type: "missed", cursor: "c5" },
    { type: "event", cursor: "c5" },
  ]);
});
