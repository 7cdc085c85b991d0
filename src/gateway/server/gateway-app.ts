import { Hono } from "hono";
import type { Readable } from "node:stream";
import { ClientError } from "../client-error.ts";
import { knownCodings } from "../../http/content-coding.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import type { GatewayDialect } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { toClientError } from "../answer-turn.ts";
import type { Gateway } from "../gateway.ts";
import { findSession, requireLocal, type AccessRules } from "./access.ts";
import { addTaskRoutes, type EndpointOf } from "./task-routes.ts";
import { BodyBudget, readBody } from "./read-request.ts";
import { addSessionRoutes } from "./session-routes.ts";

/** The model's name in the list of models. */
const listedModel = "policy";

/**
 * Creates the gateway's HTTP application.
 *
 * @param endpointOf - Returns the task endpoint of a session, for the gateway of a run. The routes of tasks then
 *   replace the routes that open and end sessions.
 */
export function createGatewayApp(
  gateway: Gateway,
  rules: AccessRules,
  endpointOf?: EndpointOf,
): Hono {
  const app = new Hono();
  const budget = new BodyBudget();
  app.use(async ({ req }, next) => {
    requireLocal(req.raw, rules);
    await next();
  });
  app.get("/", ({ json }) => json({ gateway: "turnwright" }));
  app.get("/health", ({ json }) => json({ status: "ok" }));
  if (endpointOf === undefined) addSessionRoutes(app, gateway, rules);
  else addTaskRoutes(app, { gateway, rules, endpointOf });
  for (const prefix of ["", "/s/:token"]) {
    if (prefix !== "") app.get(prefix, ({ json }) => json({ gateway: "turnwright" }));
    for (const base of [prefix, `${prefix}/v1`]) {
      addModelRoutes(app, base);
      for (const dialect of Object.values(dialects)) {
        app.post(base + dialect.path, async ({ req, env }) => {
          const inUrl = req.param("token");
          const connection = (env ?? {}) as Connection;
          return await answer(gateway, dialect, {
            request: req.raw,
            inUrl,
            rules,
            budget,
            connection,
          });
        });
      }
      app.post(`${base}/messages/count_tokens`, async ({ req, env, json }) => {
        const session = await findSession(gateway, req.raw, { inUrl: req.param("token"), rules });
        const { incoming } = (env ?? {}) as Connection;
        const body = await readBody(req.raw, { budget, incoming });
        return json({ input_tokens: await gateway.countTokens(session, dialects.messages, body) });
      });
    }
  }
  app.notFound(({ req }) =>
    errorResponse(
      new ClientError("not-found", `There is no ${req.method} ${withoutToken(req.path)}`),
      dialectAt(req.path),
    ),
  );
  app.onError((error, { req }) => {
    // With tasks, the attempt reports its own failures.
    if (endpointOf === undefined) gateway.reportOutage(error);
    return errorResponse(toClientError(error), dialectAt(req.path));
  });
  return app;
}

function addModelRoutes(app: Hono, base: string): void {
  const model = {
    id: listedModel,
    object: "model",
    created: 0,
    owned_by: "turnwright",
    type: "model",
    display_name: listedModel,
    created_at: "1970-01-01T00:00:00Z",
  };
  app.get(`${base}/models`, ({ json }) =>
    json({
      object: "list",
      data: [model],
      has_more: false,
      first_id: model.id,
      last_id: model.id,
    }),
  );
  // Every model name is valid.
  app.get(`${base}/models/:name{.+}`, ({ req, json }) =>
    json({ ...model, id: req.param("name") ?? listedModel }),
  );
}

async function answer(
  gateway: Gateway,
  dialect: GatewayDialect,
  context: {
    readonly request: Request;
    readonly inUrl: string | undefined;
    readonly rules: AccessRules;
    readonly budget: BodyBudget;
    readonly connection: Connection;
  },
): Promise<Response> {
  const { request, budget, connection } = context;
  const session = await findSession(gateway, request, context);
  const body = await readBody(request, { budget, incoming: connection.incoming }).catch(
    (error: unknown) => {
      gateway.countRefusal(session, error);
      throw error;
    },
  );
  const feed = await gateway.ask(session, dialect, { headers: request.headers, body });
  // The reader exists before the reply starts, so that an early disconnect counts too.
  const reader = feed.open(withoutUndefined({ onCut: cutOf(connection) }));
  const leave = (): void => void reader.cancel().catch(() => {});
  request.signal.addEventListener("abort", leave, { once: true });
  try {
    const { status, headers } = await feed.head;
    return new Response(reader, { status, headers });
  } finally {
    request.signal.removeEventListener("abort", leave);
  }
}

/** The sockets of a request. Both are absent for requests from this process. */
interface Connection {
  readonly incoming?: Readable;
  readonly outgoing?: { destroy(): void };
}

/** Returns a function that cuts the connection, so that a broken reply does not look complete. */
function cutOf({ outgoing }: Connection): (() => void) | undefined {
  return outgoing === undefined ? undefined : () => outgoing.destroy();
}

function dialectAt(path: string): GatewayDialect {
  return /\/messages(?:\/|$)/.test(path) ? dialects.messages : dialects.chat;
}

function withoutToken(path: string): string {
  return path.replace(/^\/s\/[^/]+/, "/s/…");
}

function errorResponse(error: ClientError, dialect: GatewayDialect): Response {
  // Anthropic's clients expect 529.
  const isOverloaded = error.kind === "overloaded" && dialect.name === "messages";
  const status = isOverloaded ? 529 : error.status;
  const headers = new Headers({ "content-type": "application/json" });
  if (error.retryAfterS !== undefined) headers.set("retry-after", String(error.retryAfterS));
  if (error.kind === "bad-encoding") headers.set("accept-encoding", knownCodings);
  return new Response(JSON.stringify(dialect.encodeError(error)), { status, headers });
}
