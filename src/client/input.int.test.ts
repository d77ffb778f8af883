import { expect, test } from "vitest";
import { connected } from "../../test/fixtures/connected-client.ts";
import { ControlError } from "../core/errors.ts";

type Given = object | undefined;
type Client = Awaited<ReturnType<typeof connected>>["client"];

const session = (client: Client) => client.session("ses_1");

/** Every method of the client that takes options, called with another value. */
const METHODS: Readonly<Record<string, (client: Client, given: Given) => unknown>> = {
  "createSession()": (client, given) => client.createSession(given),
  "prompt() of a client": (client, given) => client.prompt("hello", given),
  "sessions()": (client, given) => client.sessions(given),
  "cancel() of a run by its id": (client, given) => client.cancel("run_1", given),
  "cancel() of a session by its id": (client, given) => client.cancel("ses_1", given),
  "cancelAll()": (client, given) => client.cancelAll(given),
  "live()": (client, given) => client.live(given),
  "events() of a client": (client, given) => client.events(given).next(),
  "prompt() of a session": (client, given) => session(client).prompt("hello", given),
  "cancel() of a session": (client, given) => session(client).cancel(given),
  "cancelPrompt()": (client, given) => session(client).cancelPrompt("k", given),
  "close()": (client, given) => session(client).close(given),
  "events() of a session": (client, given) => session(client).events(given).next(),
  "pages()": (client, given) => session(client).pages(given).next(),
  "post()": (client, given) => session(client).post({ kind: "reminder", text: "hello" }, given),
  "setMode()": (client, given) => session(client).setMode("auto", given),
  "runs()": (client, given) => session(client).runs(given),
  "edit()": (client, given) => session(client).queue.edit("run_1", "hello", given),
  "move()": (client, given) => session(client).queue.move("run_1", "front", given),
  "withdraw()": (client, given) => session(client).queue.withdraw("run_1", given),
  "clear()": (client, given) => session(client).queue.clear(given),
  "steer()": (client, given) => session(client).queue.steer("run_1", given),
  "history()": (client, given) => session(client).processes.history(given),
  "allow()": (client, given) => client.questions.allow("ask_1.1", given),
  "deny()": (client, given) => client.questions.deny("ask_1.1", given),
  "answer()": (client, given) => client.questions.answer("ask_1.1", "yes", given),
};

/** Each method names the options it takes, whether it throws or rejects. */
const told = async (act: () => unknown): Promise<unknown> => {
  try {
    return await act();
  } catch (thrown) {
    return thrown;
  }
};

const wrong = ["why", null, ["why"], 7, true] as unknown as readonly Given[];

test.each(Object.keys(METHODS))(
  "%s rejects an argument that is not an options object, and sends nothing",
  async (name) => {
    await using fixture = await connected();
    for (const given of wrong) {
      const error = await told(() => METHODS[name]?.(fixture.client, given));
      expect(error, JSON.stringify(given)).toBeInstanceOf(ControlError);
      expect(error).toMatchObject({ code: "invalid" });
      expect(error).toHaveProperty(
        "message",
        expect.stringMatching(/^\w+\(\).* takes its options as an object, \{ name/),
      );
    }
    expect(fixture.server.heard).toEqual([]);
  },
);

test('cancel("why") of a run says that it takes an object, and not that it has no `0`, `1`, `2`', async () => {
  await using fixture = await connected();
  const run = session(fixture.client).prompt("hello");
  await fixture.server.next("POST /v1/sessions/ses_1/runs");
  for (const given of wrong) {
    await expect(run.cancel(given)).rejects.toMatchObject({
      code: "invalid",
      message: "cancel() of a run takes its options as an object, { name: value }.",
    });
  }
  expect(fixture.server.heard).toHaveLength(1);
});

test("methods of a process reject an argument that is not an options object", async () => {
  await using fixture = await connected();
  const asked = session(fixture.client).processes.get("proc_1.1");
  (await fixture.server.next("GET /v1/processes/proc_1.1")).json(200, { id: "proc_1.1", sessionId: "ses_1" });
  const process = await asked;
  for (const given of wrong) {
    for (const [name, act] of Object.entries({
      wait: () => process.wait(given),
      read: () => process.read(given),
      follow: () => process.follow(given).next(),
    })) {
      const message = `${name}() takes its options as an object, { name: value }.`;
      expect(await told(act), JSON.stringify(given)).toMatchObject({ code: "invalid", message });
    }
    // A string is a note.
    if (typeof given === "string") continue;
    const reason = given as Parameters<typeof process.cancel>[0];
    expect(await told(() => process.cancel(reason))).toMatchObject({ code: "invalid" });
  }
  expect(fixture.server.heard).toHaveLength(1);
});
