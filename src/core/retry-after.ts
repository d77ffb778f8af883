// The header `retry-after`, as servers and providers send it.

const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

/**
 * How long to wait, in ms. The header has seconds or a date; a date is compared with the `date` of the same response,
 * because the clocks of two machines differ. Undefined: the header is absent or not readable.
 */
export function retryAfterMs(given: string | null | undefined, date?: string | null): number | undefined {
  const text = given?.trim() ?? "";
  if (/^\d{1,9}(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const wait = HTTP_DATE.test(text) ? Date.parse(text) - Date.parse(date ?? "") : Number.NaN;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}
