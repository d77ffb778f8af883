// What users can import changes only on purpose.
import { expect, test } from "vitest";
import { listed, surface } from "./surface.ts";

test("the public surface is the one in the checked-in list (npm run surface -- --write)", () => {
  expect(surface()).toEqual(listed());
}, 30_000);
