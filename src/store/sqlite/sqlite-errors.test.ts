import { describe, expect, it } from "vitest";
import { type ControlCode, ControlError } from "../../core/errors.ts";
import { errorKindOf, type SqliteErrorKind, storeError } from "./sqlite-errors.ts";

const said = (errcode: unknown): Error => Object.assign(new Error("it said so"), { code: "ERR_SQLITE_ERROR", errcode });

const FULL = "There is no space left for a.db.";
const LOCKED = "Another program is writing to a.db.";
const DAMAGED = "a.db is damaged: it said so.";
const UNUSABLE = "a.db cannot be used: it said so.";

describe("errors of SQLite", () => {
  it.each<readonly [string, unknown, SqliteErrorKind, ControlCode, string]>([
    ["busy", said(5), "locked", "store_locked", LOCKED],
    ["busy, while a log is taken back", said(5 | (1 << 8)), "locked", "store_locked", LOCKED],
    ["locked", said(6), "locked", "store_locked", LOCKED],
    ["corrupt", said(11), "corrupt", "store_corrupt", DAMAGED],
    ["full", said(13), "full", "store_full", FULL],
    ["constraint", said(19), "breach", "internal", "The store refused facts that contradict it: it said so."],
    ["not a database", said(26), "corrupt", "store_corrupt", DAMAGED],
    ["a failing disk", said(10), "unclear", "unavailable", UNUSABLE],
    ["an error without a number", said(undefined), "unclear", "unavailable", UNUSABLE],
    ["an error whose number is a text", said("13"), "unclear", "unavailable", UNUSABLE],
    ["an error of another kind", new Error("it said so"), "unclear", "unavailable", UNUSABLE],
    ["something that is no error", { errcode: 13 }, "unclear", "unavailable", "a.db cannot be used: [object Object]."],
    ["nothing", undefined, "unclear", "unavailable", "a.db cannot be used: undefined."],
  ])("%s: becomes an error of the store, with its cause", (_, thrown, trouble, code, message) => {
    expect(errorKindOf(thrown)).toBe(trouble);
    const error = storeError(thrown, "a.db");
    expect(error).toMatchObject({ name: "ControlError", code, message });
    expect(error.cause).toBe(thrown);
  });
});

describe("errors of the store", () => {
  it.each<readonly [ControlCode, SqliteErrorKind]>([
    ["internal", "breach"],
    ["store_full", "full"],
    ["store_locked", "locked"],
    ["store_corrupt", "corrupt"],
    ["store_newer", "corrupt"],
    ["unavailable", "unclear"],
    ["invalid", "unclear"],
  ])("%s: keeps its kind, and is returned unchanged", (code, trouble) => {
    const error = new ControlError(code, "As it was.");
    expect(errorKindOf(error)).toBe(trouble);
    expect(storeError(error, "a.db")).toBe(error);
  });
});
