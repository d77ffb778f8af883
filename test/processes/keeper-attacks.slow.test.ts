// Attacks of a command against the Belay that runs it, by mechanism: each has its documented result.
import { describe, expect, test } from "vitest";
import { ATTACKS, ENFORCEMENT } from "../../src/process/containment/attacks.ts";
import { here } from "../fixtures/mechanisms-here.ts";
import { ATTACK_NAMES, carryOut, PROFILES } from "../trees/attacks.ts";

const grounds = here().flatMap((mechanism) => PROFILES[mechanism].map((profile) => [mechanism, profile] as const));

describe.each(grounds)("G38: a command held by %s in the profile %s that tries to", (mechanism, profile) => {
  test.each(ATTACK_NAMES.map((attack) => [ATTACKS[attack], attack] as const))("%s", async (_, attack) => {
    expect(await carryOut(attack, mechanism, profile)).toBe(ENFORCEMENT[attack][mechanism]);
  });
});
