// Damage done to a file, one kind after the other, and what became of each.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Chooser, SeededChooser } from "../../sim/chooser.ts";
import { examine, type Verdict } from "./examine.ts";
import { makeSpecimen, type Specimen } from "./specimen.ts";

const PAGE_BYTES = 4_096;
const SECTOR_BYTES = 512;
/** Enough for some dozens of pages, and for every kind of row. */
const APPENDS = 150;

type Harm = (bytes: Buffer, chooser: Chooser) => Buffer;

export const HARMS: Readonly<Record<string, Harm>> = {
  bit: (bytes, chooser) => {
    const at = chooser.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << chooser.below(8));
    return bytes;
  },
  byte: (bytes, chooser) => {
    bytes[chooser.below(bytes.length)] = chooser.below(256);
    return bytes;
  },
  "empty sector": (bytes, chooser) => {
    const start = chooser.below(bytes.length / SECTOR_BYTES) * SECTOR_BYTES;
    return bytes.fill(0, start, start + SECTOR_BYTES);
  },
  "two pages in each other's place": (bytes, chooser) => {
    const pages = bytes.length / PAGE_BYTES;
    const [one, other] = [chooser.below(pages) * PAGE_BYTES, chooser.below(pages) * PAGE_BYTES];
    const kept = Buffer.from(bytes.subarray(one, one + PAGE_BYTES));
    bytes.copyWithin(one, other, other + PAGE_BYTES);
    kept.copy(bytes, other);
    return bytes;
  },
  "missing end": (bytes, chooser) => bytes.subarray(0, 1 + chooser.below(bytes.length - 1)),
};

export interface Round {
  readonly seed: number;
  readonly harm: string;
  readonly verdict: Verdict;
}

/** Each round does one kind of damage to a fresh copy, opens it and reads all of it. */
export function* damageRounds(seed: number, rounds: number): Generator<Round, void> {
  const specimen = makeSpecimen(seed, APPENDS);
  for (let round = 0; round < rounds; round += 1) yield damageRound(specimen, seed + round);
}

function damageRound({ bytes, told }: Specimen, seed: number): Round {
  const kinds = Object.entries(HARMS);
  const [harm, act] = kinds[seed % kinds.length] ?? ["none", (whole: Buffer) => whole];
  const folder = mkdtempSync(join(tmpdir(), "belay-damaged-"));
  try {
    const file = join(folder, "belay.db");
    writeFileSync(file, act(Buffer.from(bytes), new SeededChooser(seed)));
    return { seed, harm, verdict: examine(file, told) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
