// A tool that never listens: run in a thread of its own by the tests.

export function spin(_: unknown, call: { partial(value: string): void }): never {
  call.partial("spinning");
  for (;;);
}
