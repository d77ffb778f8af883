// One disk and what becomes of it: lives of the store, each ended by a power cut, a crash or a close, and checked by
// the next one. Everything follows from one seed.
//
// A life is the real `openFile` with its real writer; what it imports from the platform is the disk's (see on-disk.ts).
// To be loaded after that.
import { type Chooser, chance, SeededChooser, weighted } from "../../sim/chooser.ts";
import { messageOf } from "../../src/core/errors.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import { type Database, openDatabase, openReadOnly, useWriteAheadLog } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/file/migrate.ts";
import { type OpenFile, openFile } from "../../src/store/sqlite/file/open-file.ts";
import { EPOCH_BLOCK } from "../../src/store/sqlite/limits.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { type Cell, packBatch, unpackBatches, type Written } from "../../src/store/sqlite/thread/message.ts";
import { check, type Finding } from "./check.ts";
import { FOLDER } from "./disk-fs.ts";
import { useCheckpointPages } from "./disk-sqlite.ts";
import { mount, openHandles } from "./disk-vfs.ts";
import { type Lie, type Moment, SimDisk } from "./sim-disk.ts";
import { type Sent, Told } from "./told.ts";
import { Workload } from "./workload.ts";

const FILE = `${FOLDER}/belay.db`;
const STEPS_MAX = 10;
const GROUP_MAX = 5;
/** In some worlds the first lives end about when the file is made and gets its write-ahead log. */
const YOUNG_LIVES = 5;
const YOUNG_PERCENT = 25;
/** How often it is the program that dies in the middle of a change, and not the machine. */
const CRASH_PERCENT = 15;

export interface WorldOptions {
  readonly seed: number;
  readonly cuts: number;
  readonly lies?: readonly Lie[];
}

export interface WorldEnd {
  readonly cuts: number;
  readonly acked: number;
  /** What was going on at each cut: the doing of the store, and what it did to which file. */
  readonly moments: readonly string[];
  /** Of what each cut has left. */
  readonly digests: readonly string[];
  readonly findings: readonly Finding[];
}

/** What the store was about, as far as we know from here. */
type Doing = "create" | "open" | "migrate" | "read" | "append" | "append-full" | "trim" | "close" | "rest";

export function runWorld({ seed, cuts, lies = [] }: WorldOptions): WorldEnd {
  const world = new World(seed, lies);
  try {
    return world.run(cuts);
  } finally {
    world.end();
  }
}

class World {
  readonly #chooser: Chooser;
  readonly #disk: SimDisk;
  readonly #told = new Told();
  readonly #workload: Workload;
  readonly #findings: Finding[] = [];
  readonly #moments: string[] = [];
  readonly #digests: string[] = [];
  readonly #youngest: boolean;
  #doing: Doing = "create";
  #group = 0;

  constructor(seed: number, lies: readonly Lie[]) {
    this.#chooser = new SeededChooser(seed);
    this.#disk = new SimDisk(lies);
    this.#workload = new Workload(this.#chooser);
    const random = new SeededChooser(seed ^ 0x5eed);
    mount(this.#disk, () => random.below(256));
    useCheckpointPages(4 + this.#chooser.below(60));
    this.#youngest = chance(this.#chooser, YOUNG_PERCENT);
  }

  run(cuts: number): WorldEnd {
    if (chance(this.#chooser, 25)) this.#oldFile();
    while (this.#digests.length < cuts && this.#findings.length === 0) this.#life();
    if (this.#findings.length === 0) this.#lastLife();
    const { acked } = this.#told;
    return {
      cuts: this.#digests.length,
      acked,
      moments: this.#moments,
      digests: this.#digests,
      findings: this.#findings,
    };
  }

  end(): void {
    this.#disk.cut();
  }

  /** One life. How long it lasts is chosen before it begins: often it does not get far. */
  #life(): void {
    const young = this.#youngest && this.#digests.length < YOUNG_LIVES;
    const changes = weighted<() => number>(this.#chooser, [
      [young ? 400 : 0, () => 20 + this.#chooser.below(50)],
      [25, () => 1 + this.#chooser.below(20)],
      [60, () => 1 + this.#chooser.below(250)],
      [15, () => Number.POSITIVE_INFINITY],
    ])();
    this.#disk.cutAfter(changes);
    this.#guarded(() => this.#work());
    this.#disk.capacity = Number.POSITIVE_INFINITY;
    if (!this.#disk.dead) this.#doing = "rest";
    // Also in the middle of something: then what the next life reads was never synced by anybody.
    const crash = chance(this.#chooser, this.#disk.dead ? CRASH_PERCENT : 30);
    if (!crash) this.#cut();
    else this.#disk.kill();
    if (openHandles() > 0) this.#find({ kind: "wrong", message: `${openHandles()} files were left open` });
  }

  /** Nothing happens to this one, so it must open, and have everything. */
  #lastLife(): void {
    this.#guarded(() => {
      const opened = this.#open();
      if (opened !== undefined) this.#leave(opened);
    });
  }

  #cut(): void {
    this.#disk.cut();
    const { moment, digest } = this.#disk.restore(this.#chooser);
    this.#moments.push(`${this.#doing}: ${named(moment)}`);
    this.#digests.push(digest);
  }

  #work(): void {
    const opened = this.#open();
    if (opened === undefined) return;
    try {
      for (const session of this.#told.sessions.keys()) this.#recover(opened, session);
      for (let left = this.#chooser.below(STEPS_MAX + 1); left > 0 && !this.#disk.dead; left -= 1) this.#step(opened);
    } finally {
      if (this.#disk.dead || chance(this.#chooser, 30)) this.#leave(opened);
      else this.#abandon(opened);
    }
  }

  #open(): OpenFile | undefined {
    const found = this.#disk.file(FILE);
    this.#doing = found === undefined || found.size === 0 ? "create" : this.#doing === "migrate" ? "migrate" : "open";
    // With a mark for every commit, so that it would be found to say too much.
    const opened = openFile(FILE, { markEveryMs: 0 });
    this.#doing = "open";
    try {
      const epoch = opened.epochs();
      if (epoch <= this.#told.epoch) this.#find({ kind: "lost", message: `epoch ${epoch} is handed out again` });
      this.#told.epoch = epoch + EPOCH_BLOCK - 1;
      this.#check();
      if (this.#findings.length === 0) return opened;
      this.#leave(opened);
      return undefined;
    } catch (error) {
      this.#leave(opened);
      throw error;
    }
  }

  /** By a connection of its own that cannot write, as the reader's thread has it. */
  #check(): void {
    this.#doing = "read";
    const database = openReadOnly(FILE);
    try {
      for (const finding of check(database, this.#told)) this.#find(finding);
    } finally {
      database.close();
    }
  }

  #recover(opened: OpenFile, session: SessionId): void {
    const step = this.#disk.dead ? undefined : this.#workload.recovery(this.#told.known(session).lane);
    this.#group += 1;
    if (step !== undefined) this.#append(opened, [this.#sent(step)]);
  }

  #step(opened: OpenFile): void {
    const kind = this.#chooser.below(12);
    if (kind === 0) this.#trim(opened);
    // From now on the disk is as good as full; after a while there is room again.
    else if (kind === 1) this.#disk.capacity = this.#disk.used + this.#chooser.below(40_000);
    else if (kind === 2) this.#disk.capacity = Number.POSITIVE_INFINITY;
    else this.#append(opened, this.#makeGroup());
  }

  #makeGroup(): readonly Sent[] {
    this.#group += 1;
    const lanes = new Map<SessionId, ReturnType<Told["known"]>["lane"]>();
    const group: Sent[] = [];
    for (let left = 1 + this.#chooser.below(GROUP_MAX); left > 0; left -= 1) {
      const session = this.#workload.session();
      const step = this.#workload.next(lanes.get(session) ?? this.#told.known(session).lane);
      if (step === undefined) continue;
      lanes.set(session, step.lane);
      group.push(this.#sent(step));
    }
    return group;
  }

  #sent(step: Omit<Sent, "packed" | "group">): Sent {
    const cells: Cell[] = [];
    packBatch(cells, step.batch);
    const [packed] = unpackBatches(cells);
    if (packed === undefined) throw new Error("a batch was not packed");
    return { ...step, packed, group: this.#group };
  }

  #append({ writer }: OpenFile, group: readonly Sent[]): void {
    const full = Number.isFinite(this.#disk.capacity);
    this.#doing = full ? "append-full" : "append";
    let answers: readonly Written[] = [];
    try {
      answers = writer.append(group.map(({ packed }) => packed));
    } catch (error) {
      this.#find({ kind: "wrong", message: `an append threw, and told nobody anything: ${messageOf(error)}` });
    }
    let failed = false;
    for (const [index, sent] of group.entries()) {
      const answer = answers[index];
      if (answer?.kind === "appended") {
        this.#told.confirm(sent);
        this.#told.acked += 1;
        continue;
      }
      // On a full disk each is tried alone, so they are not one transaction any more.
      this.#refuse(full ? { ...sent, group: -1 - this.#told.doubts.length } : sent, answer);
      // On a full disk what comes behind an append that failed finds another head than it expects.
      if (!this.#disk.dead && !isFull(answer) && !(full && failed))
        this.#find({ kind: "wrong", message: said(answer) });
      failed = true;
    }
  }

  #refuse(sent: Sent, answer: Written | undefined): void {
    const { doubts, refused } = this.#told;
    if (this.#disk.dead) doubts.push(sent);
    else refused.push({ sent, because: said(answer) });
  }

  #trim({ writer }: OpenFile): void {
    this.#doing = "trim";
    const session = this.#workload.session();
    const known = this.#told.known(session);
    const before = known.keptFrom + this.#chooser.below(known.lane.head + 1);
    try {
      known.keptFrom = writer.trim(session, before).kept;
    } catch (error) {
      if (this.#disk.dead) this.#told.trimDoubt = { session, before };
      else if (!Number.isFinite(this.#disk.capacity)) throw error;
    }
  }

  #leave(opened: OpenFile): void {
    if (!this.#disk.dead) {
      this.#doing = "close";
      this.#disk.capacity = Number.POSITIVE_INFINITY;
      if (chance(this.#chooser, 50)) this.#disk.cutAfter(1 + this.#chooser.below(14));
    }
    opened.close();
  }

  /** The end of a program that is not asked: nothing it still wanted to write is written. */
  #abandon(opened: OpenFile): void {
    this.#disk.suspend(() => opened.close());
  }

  /** A file as an earlier version has left it, with something in it. */
  #oldFile(): void {
    const version = 1 + this.#chooser.below(VERSIONS_WITHOUT_SUMS);
    const database = openDatabase(FILE);
    try {
      migrate(database, MIGRATIONS.slice(0, version));
      useWriteAheadLog(database);
      for (let left = this.#chooser.below(8); left > 0; left -= 1) {
        for (const sent of this.#makeGroup()) appendAsOf(database, sent, this.#told);
      }
    } finally {
      database.close();
    }
    this.#doing = "migrate";
  }

  /** Failures of a disk without power are no findings. All others are: nothing here may fail. */
  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!this.#disk.dead) this.#find({ kind: "corrupt", message: `${this.#doing}: ${messageOf(error)}` });
    }
  }

  #find(finding: Finding): void {
    this.#findings.push(finding);
  }
}

/** Later versions keep checksums, which `appendAsOf` does not write. */
const VERSIONS_WITHOUT_SUMS = 3;

const isFull = (answer: Written | undefined): boolean => answer?.kind === "failed" && answer.code === "store_full";

const said = (answer: Written | undefined): string =>
  answer?.kind === "failed" ? `an append failed: ${answer.message}` : `an append was answered as ${answer?.kind}`;

/** Which file, without what differs from world to world. */
const named = ({ doing, path }: Moment): string => {
  const end = path.startsWith(FILE) ? path.slice(FILE.length) : path;
  return end === "" ? (path === "" ? doing : `${doing} database`) : `${doing} ${end.slice(1)}`;
};

/** By hand, because the writer knows only the tables of today. */
function appendAsOf(database: Database, sent: Sent, told: Told): void {
  const { packed } = sent;
  // Those of before had no directory, and only what changes no row but these is made here.
  const known = new Set(["create-session", "insert-run"]);
  if (packed.count === 0 || packed.changes.some(({ type }) => !known.has(type))) return;
  if (told.known(packed.session).lane.head !== packed.expected) return;
  database.exec("BEGIN IMMEDIATE");
  for (const { type, id, at, first, second } of packed.changes) {
    if (type === "create-session") {
      database
        .prepare("INSERT INTO session (id, created_at, title) VALUES (?, ?, ?)")
        .run(packed.session, packed.at, first);
    } else {
      database
        .prepare(`INSERT INTO run (id, session, accepted_at, key, content)
          VALUES (?, (SELECT number FROM session WHERE id = ?), ?, ?, ?)`)
        .run(id, packed.session, at, first, second);
    }
  }
  database
    .prepare("INSERT INTO event SELECT number, ?, ?, ?, ? FROM session WHERE id = ?")
    .run(packed.expected + 1, packed.count, packed.at, packed.data, packed.session);
  if (packed.snapshot !== null) {
    database
      .prepare("INSERT OR REPLACE INTO snapshot SELECT number, ?, ? FROM session WHERE id = ?")
      .run(packed.expected + packed.count, packed.snapshot, packed.session);
  }
  database.exec("COMMIT");
  told.confirm(sent);
  told.acked += 1;
}
