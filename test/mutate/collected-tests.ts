// Stands in for the test framework while mutants are hunted: collects tests once, so that they can be run again and
// again in one process. Expectations are the framework's own.
//
// Invariants
// 1. A test file is loaded once. What it says while it is loaded is not run again for a mutant.
// 2. Of a test that has begun, everything ends before the next one begins, unless it has run out of time.
import { format } from "node:util";

type Act = () => unknown;
type Body = (...given: readonly unknown[]) => unknown;

interface Place {
  readonly name: string;
  readonly around: readonly Place[];
  readonly beforeEach: Act[];
  readonly afterEach: Act[];
  readonly beforeAll: Act[];
  readonly afterAll: Act[];
  readonly skipped: boolean;
}

export interface CollectedTest {
  readonly id: string;
  readonly file: string;
  readonly name: string;
  readonly place: Place;
  readonly body: Act;
}

export const tests: CollectedTest[] = [];

/** A test that takes this long hangs. Alone on the machine, none takes a tenth of it. */
const TEST_MS_MAX = 10_000;

let file = "";
let places: readonly Place[] = [];
let atEnd: Act[] = [];

const placeOf = (name: string, skipped = false): Place => ({
  name,
  around: places,
  beforeEach: [],
  afterEach: [],
  beforeAll: [],
  afterAll: [],
  skipped: skipped || (places.at(-1)?.skipped ?? false),
});

/** Loads a file, whose tests are then among `tests`. */
export async function collect(path: string, load: () => Promise<unknown>): Promise<void> {
  file = path;
  places = [placeOf(path)];
  await load();
}

/** `describe`, `test` and their kin: a name, perhaps settings, and a body; or a row of them. */
function declarer(declare: (name: string, body: Act, skipped: boolean) => void) {
  const one = (name: string, ...rest: readonly unknown[]): void => {
    const body = rest.find((given) => typeof given === "function");
    if (body !== undefined) declare(name, body as Act, false);
  };
  const each =
    (rows: readonly unknown[]) =>
    (name: string, ...rest: readonly unknown[]): void => {
      const body = rest.find((given) => typeof given === "function") as Body;
      for (const row of rows) {
        const given: readonly unknown[] = Array.isArray(row) ? row : [row];
        declare(titleOf(name, given), () => body(...given), false);
      }
    };
  const skip = (name: string): void => declare(name, () => {}, true);
  const skipIf = (condition: unknown) => (condition === true ? Object.assign(skip, { each: () => skip }) : api);
  const api = Object.assign(one, { each, skip, skipIf });
  return api;
}

function titleOf(name: string, given: readonly unknown[]): string {
  const words = name.replaceAll(/\$(\w+)/g, (whole, key: string) => {
    const [first] = given;
    return typeof first === "object" && first !== null && key in first ? String(Reflect.get(first, key)) : whole;
  });
  // No more than the name asks for: the rest may print differently in each process, and a test is known by its title.
  return format(words, ...given.slice(0, words.split("%").length - 1));
}

export const describe = declarer((name, body, skipped) => {
  const before = places;
  places = [...places, placeOf(name, skipped)];
  body();
  places = before;
});

export const test = declarer((name, body, skipped) => {
  const place = places.at(-1);
  if (place === undefined || skipped || place.skipped) return;
  const full = [...place.around.slice(1), place, { name }].map((one) => one.name).filter((one) => one !== file);
  const same = tests.filter((one) => one.file === file && one.name === full.join(" > ")).length;
  const title = `${full.join(" > ")}${same === 0 ? "" : ` #${same}`}`;
  tests.push({ id: `${file}#${title}`, file, name: title, place, body });
});

const keeper =
  (where: "beforeEach" | "afterEach" | "beforeAll" | "afterAll") =>
  (act: Act): void => {
    places.at(-1)?.[where].push(act);
  };
export const beforeEach = keeper("beforeEach");
export const afterEach = keeper("afterEach");
export const beforeAll = keeper("beforeAll");
export const afterAll = keeper("afterAll");
export const onTestFinished = (act: Act): void => {
  atEnd.push(act);
};

/**
 * What it failed with; undefined if it passed. `beforeAll` is done for each test: it may be the only one, and a mutant
 * may be in it. `afterAll` puts away what `beforeAll` has made; where there is none, what was made while the file was
 * loaded, which the next test needs.
 */
export async function runTest({ place, body }: CollectedTest, msMax: number = TEST_MS_MAX): Promise<unknown> {
  const line = [...place.around, place];
  atEnd = [];
  const acts = [...line.flatMap((one) => one.beforeAll), ...line.flatMap((one) => one.beforeEach), body];
  const failure = await firstFailure(acts, msMax, "stop");
  const ends = [
    ...atEnd.toReversed(),
    ...line.toReversed().flatMap((one) => one.afterEach),
    ...line.toReversed().flatMap((one) => (one.beforeAll.length === 0 ? [] : one.afterAll)),
  ];
  const afterwards = await firstFailure(ends, msMax, "go on");
  return failure ?? afterwards;
}

async function firstFailure(acts: readonly Act[], msMax: number, then: "stop" | "go on"): Promise<unknown> {
  let failure: unknown;
  for (const act of acts) {
    try {
      await inTime(act(), msMax);
    } catch (error) {
      failure ??= error ?? new Error("It threw nothing.");
      if (then === "stop") break;
    }
  }
  return failure;
}

function inTime(going: unknown, msMax: number): unknown {
  if (!(going instanceof Promise)) return going;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("It took too long.")), msMax);
    going.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
