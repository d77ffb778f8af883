// The diagram of the house holds, and each of its rules bites.
import { describe, expect, test } from "vitest";
import { sources } from "../fixtures/repository.ts";
import { cycles, importFindings, isBarrel, ROOMS, roomOf } from "./import-rules.ts";

const files = sources();

test("every import goes along the diagram", () => {
  expect(files.flatMap(importFindings)).toEqual([]);
});

test("no file imports itself, however far the way round", () => {
  expect(cycles(files)).toEqual([]);
});

test("there are no barrels", () => {
  expect(files.map((file) => file.path).filter(isBarrel)).toEqual([]);
});

test("every folder of src is in the layout", () => {
  const rooms = new Set(files.flatMap((file) => roomOf(file.path) ?? []));
  expect([...rooms].filter((room) => ROOMS[room] === undefined)).toEqual([]);
});

test("the diagram has no cycle, and no folder imports cli or testing", () => {
  const seen = new Set<string>();
  const visit = (room: string, trail: readonly string[]): void => {
    expect(trail, `${room} is reached from itself`).not.toContain(room);
    if (seen.has(room)) return;
    for (const next of [...(ROOMS[room]?.from ?? []), ...(ROOMS[room]?.typesFrom ?? [])]) visit(next, [...trail, room]);
    seen.add(room);
  };
  for (const room of Object.keys(ROOMS)) visit(room, []);
  const imported = Object.values(ROOMS).flatMap((room) => [...(room.from ?? []), ...(room.typesFrom ?? [])]);
  expect(imported).not.toContain("cli");
  expect(imported).not.toContain("testing");
});

describe("each rule bites", () => {
  test.each([
    ["src/core/a.ts", 'import "node:fs";', "core may not import node:"],
    ["src/core/a.ts", 'import type { Store } from "../ports/store.ts";', "core may not import ports"],
    ["src/core/a.ts", 'const a = await import("../engine/a.ts");', "core may not import engine"],
    ["src/core/a.ts", 'type A = import("../wire/a.ts").A;', "core may not import wire"],
    ["src/ports/agent.ts", 'import { decide } from "../core/decide.ts";', "ports may import only types from core"],
    ["src/wire/a.ts", 'import type { Store } from "../ports/store.ts";', "wire may not import ports"],
    ["src/store/sqlite/a.ts", 'import { a } from "../../engine/a.ts";', "store/sqlite may not import engine"],
    ["src/store/sqlite/a.ts", 'import { a } from "../memory/a.ts";', "store/sqlite may not import store/memory"],
    ["src/store/memory/a.ts", 'import pg from "pg";', "store/memory may not import pg"],
    ["src/engine/a.ts", 'export { a } from "../wire/a.ts";', "engine may not import wire"],
    ["src/engine/a.ts", 'import { a } from "../testing/given.ts";', "engine may not import testing"],
    ["src/process/a.ts", 'import { a } from "../engine/a.ts";', "process may not import engine"],
    ["src/http/a.ts", 'import { a } from "../store/sqlite/a.ts";', "http may not import store/sqlite"],
    ["src/http/a.ts", 'import { type A, b } from "../ports/control.ts";', "http may import only types from ports"],
    ["src/http/a.ts", 'import { a } from "../engine/a.ts";', "http may not import engine"],
    ["src/client/a.ts", 'import { a } from "../engine/a.ts";', "client may not import engine"],
    [
      "src/protocols/acp/agent/a.ts",
      'import { a } from "../../../store/memory/a.ts";',
      "protocols may not import store/memory",
    ],
    ["src/sdk/a.ts", 'import { a } from "../store/postgres/a.ts";', "sdk may not import store/postgres"],
    ["src/http/a.ts", 'import { a } from "../cli/a.ts";', "http may not import cli"],
    [
      "src/engine/a.ts",
      'import { a } from "../../test/fixtures/repository.ts";',
      "src imports nothing from outside of src",
    ],
    ["src/store/growth.ts", 'import { a } from "./contract/contract.ts";', "nothing but tests imports tests"],
    ["src/engine/a.ts", 'import { x } from "@scope/name/sub";', "engine may not import @scope/name"],
    ["src/misc/a.ts", 'import "node:fs";', "misc is not a room of the house"],
    ["src/engine/a.ts", 'import { a } from "./b";', "a relative import carries its extension"],
    ["src/engine/a.test.ts", 'import { a } from "./b";', "a relative import carries its extension"],
    ["src/engine/a.ts", 'import { a } from "../index.ts";', "no barrels: import from the file that defines the thing"],
  ])("%s may not say %s", (path, text, problem) => {
    const [finding] = importFindings({ path, text });
    expect(finding).toContain(problem);
  });

  test.each([
    ["src/http/a.ts", 'import type { A } from "../ports/control.ts";'],
    ["src/client/a.ts", 'import { type A, type B } from "../core/a.ts";'],
    ["src/ports/agent.ts", 'export type { A } from "../core/a.ts";'],
    ["src/store/sqlite/a.ts", 'import { DatabaseSync } from "node:sqlite";'],
    ["src/store/sqlite/a.ts", 'import { a } from "../growth.ts";'],
    ["src/cli/a.ts", 'import { a } from "../store/sqlite/a.ts";'],
    ["src/core/a.test.ts", 'import { given } from "../testing/given.ts";'],
    ["test/a.test.ts", 'import { x } from "anything";'],
    ["bench/a.ts", 'import { openBelay } from "../src/index.ts";'],
  ])("%s may say %s", (path, text) => {
    expect(importFindings({ path, text })).toEqual([]);
  });

  test("circles are found, once each, also through types", () => {
    const found = cycles([
      { path: "src/core/a.ts", text: 'import { b } from "./b.ts";' },
      { path: "src/core/b.ts", text: 'import type { C } from "./c.ts";' },
      { path: "src/core/c.ts", text: 'export { a } from "./a.ts";' },
      { path: "src/core/d.ts", text: 'import { a } from "./a.ts";' },
    ]);
    expect(found).toEqual(["src/core/a.ts -> src/core/b.ts -> src/core/c.ts -> src/core/a.ts"]);
  });

  test("barrels are found", () => {
    expect(isBarrel("src/core/index.ts")).toBe(true);
    expect(isBarrel("src/index.ts")).toBe(false);
    expect(isBarrel("src/testing/index.ts")).toBe(false);
  });
});
