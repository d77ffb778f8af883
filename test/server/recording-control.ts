// A control that writes down what is asked of it and does nothing: for showing that something was not asked.
import type { BelayControl } from "../../src/control.ts";
import { ControlError } from "../../src/core/control-error.ts";
import type { SessionId } from "../../src/core/ids.ts";

export interface Call {
  readonly what: string;
  readonly given: readonly unknown[];
}

/** Every call is recorded and refused as `not_found`. `home` alone answers: it changes nothing. */
export function recordingControl(home: SessionId | undefined): {
  readonly control: BelayControl;
  readonly calls: Call[];
} {
  const calls: Call[] = [];
  const refusing = (what: string): object =>
    new Proxy(() => {}, {
      get: (_, name) => (name === "then" ? undefined : refusing(`${what}.${String(name)}`)),
      apply: (_, __, given) => {
        calls.push({ what, given });
        // Handles are taken without asking for anything.
        if (what === "control.session") return refusing("session");
        throw new ControlError("not_found", "There is nothing here.");
      },
    });
  const target = refusing("control");
  const control = new Proxy(target, {
    get: (_, name) => {
      if (name === "home") return () => Promise.resolve(home);
      return Reflect.get(target, name);
    },
  });
  // A stand-in for whatever is asked of it: no type says that of a proxy.
  return { control: control as unknown as BelayControl, calls };
}
