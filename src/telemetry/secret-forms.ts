// The forms in which a secret turns up: as it is, in base64, in a URL, inside JSON. Pure.

/** Forms to be found as they stand, and those in base64, whose ends depend on what stood beside the secret. */
export interface SecretForms {
  readonly exact: readonly string[];
  readonly base64: readonly string[];
}

export function secretForms(secret: string): SecretForms {
  const whole = secret.toWellFormed();
  return {
    exact: [...new Set([secret, ...inJson(whole), ...inUrl(whole)])],
    base64: [...new Set(inBase64(whole).flatMap((one) => [one, urlSafe(one)]))],
  };
}

/** Once escaped, and twice: a text that is JSON is escaped again when it becomes part of a log line. */
function inJson(secret: string): readonly string[] {
  const once = escaped(secret);
  const forms = [once, escaped(once), ascii(once), escaped(ascii(once))];
  // Some writers escape the slash as well.
  return forms.flatMap((one) => [one, one.replaceAll("/", "\\/")]);
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** As written by those who put nothing but ASCII on the wire. */
const ascii = (text: string): string =>
  text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Encoders differ in which marks they leave, in the case of the digits, and in what becomes of a space. */
function inUrl(secret: string): readonly string[] {
  const lenient = encodeURIComponent(secret);
  const strict = lenient.replace(/[!'()*~]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [lenient, strict, lenient.replaceAll("%20", "+"), strict.replaceAll("%20", "+")];
  return forms.flatMap((one) => [one, one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

/**
 * Base64 cuts bytes in groups of three, so a secret inside something longer looks like one of three texts. Only the
 * characters that depend on nothing but the secret are looked for.
 */
function inBase64(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, "utf8");
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}

const urlSafe = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_");
