// Belay mounted in Nest, in the three ways that Nest documents for the handler of another library.
import "reflect-metadata";
import type { IncomingMessage, ServerResponse } from "node:http";
import { All, Controller, type INestApplication, type MiddlewareConsumer, Module, Req, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { closers, type MountOf, mounted, testMounts } from "./mount-attacks.ts";

async function listening(app: INestApplication): Promise<string> {
  closers.push(() => app.close());
  await app.listen(0, "127.0.0.1");
  return `${await app.getUrl()}/agents`;
}

/** Decorators are called as functions, because Node.js runs these files without compiling them. */
const MOUNTS: Readonly<Record<string, MountOf>> = {
  "Nest, before its body parser": async (control) => {
    class Root {}
    Module({})(Root);
    const app = await NestFactory.create(Root, { logger: false });
    app.use("/agents", mounted(control).node);
    return listening(app);
  },
  "Nest, as a middleware of a module, behind its body parser": async (control) => {
    const { node } = mounted(control, "/agents");
    class Root {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(node).forRoutes("agents/*path");
      }
    }
    Module({})(Root);
    return listening(await NestFactory.create(Root, { logger: false }));
  },
  "Nest, in a controller": async (control) => {
    const { node } = mounted(control, "/agents");
    class Agents {
      handle(request: IncomingMessage, response: ServerResponse): void {
        node(request, response);
      }
    }
    Req()(Agents.prototype, "handle", 0);
    Res()(Agents.prototype, "handle", 1);
    All("*path")(Agents.prototype, "handle", Object.getOwnPropertyDescriptor(Agents.prototype, "handle") ?? {});
    Controller("agents")(Agents);
    class Root {}
    Module({ controllers: [Agents] })(Root);
    return listening(await NestFactory.create(Root, { logger: false }));
  },
};

testMounts(MOUNTS);
