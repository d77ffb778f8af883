// Whether whoever does the work for this home is still there: asked once, by a request that is not answered to its end
// before they go.
import { get } from "node:http";

export interface HostWatch {
  /** Resolves when they are gone, or say that they go. */
  readonly gone: Promise<void>;
  stop(): void;
}

/** The stream of a whole house stays open as long as the house. What it tells is not looked at. */
export function watchHost(socketPath: string): HostWatch {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const request = get(
    { socketPath, path: "/v1/events", agent: false, headers: { host: "localhost", accept: "text/event-stream" } },
    (answer) => {
      answer.resume();
      answer.on("error", () => resolve());
      answer.on("close", resolve);
    },
  );
  request.on("error", () => resolve());
  request.on("close", resolve);
  return { gone, stop: () => void request.destroy() };
}
