import { expect, test } from "vitest";
import { retryAfterMs } from "./retry-after.ts";

const NOW = "Thu, 19 Nov 2026 10:00:00 GMT";

test.each([
  ["7", NOW, 7_000],
  [" 0.5 ", undefined, 500],
  ["0", null, 0],
  ["Thu, 19 Nov 2026 10:00:20 GMT", NOW, 20_000],
  ["Thu, 19 Nov 2026 09:59:00 GMT", NOW, 0],
  // Without the time of the response a date is useless: the clock of another machine may be wrong by years.
  ["Thu, 19 Nov 2026 10:00:20 GMT", undefined, undefined],
  ["soon", NOW, undefined],
  ["-3", NOW, undefined],
  ["", NOW, undefined],
  [null, NOW, undefined],
  [undefined, undefined, undefined],
])("`retry-after: %s` at %s is %s ms", (given, date, ms) => {
  expect(retryAfterMs(given, date)).toBe(ms);
});
