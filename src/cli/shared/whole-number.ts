// Parses a whole number from the command line, within bounds that the error names.
import { ControlError } from "../../core/errors.ts";
import { plainLine } from "./format/plain-text.ts";

export interface Bounds {
  readonly from: number;
  readonly to: number;
  readonly unit?: string;
}

export function wholeNumber(typed: string, option: string, { from, to, unit = "" }: Bounds): number {
  const number = /^\d{1,15}$/.test(typed) ? Number(typed) : Number.NaN;
  if (number >= from && number <= to) return number;
  throw new ControlError("invalid", `${option} cannot be "${plainLine(typed, 40)}".`, {
    hint: `It is a whole number from ${from} to ${to}${unit === "" ? "" : ` ${unit}`}.`,
  });
}
