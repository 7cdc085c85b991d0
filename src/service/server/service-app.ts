import { Hono, type Context } from "hono";
import { describeError } from "../../errors.ts";
import { knownCodings } from "../../http/content-coding.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { encodeLine } from "../../run/disk/encode-line.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { ClientError } from "../../gateway/client-error.ts";
import { bearerOf, isSame, requireLocal } from "../../gateway/server/access.ts";
import { aggregateMetrics } from "../nemo-gym/aggregate-metrics.ts";
import type { GymAgent } from "../nemo-gym/gym-agent.ts";
import { readBatchRequest } from "../batch-request.ts";
import { streamGroups } from "../group-stream.ts";
import { checkMembers, optional, textOf, wholeNumber } from "../read-members.ts";
import type { Announcement } from "../policy-weights.ts";
import type { Acknowledgement } from "../rollout-service-options.ts";
import type { RolloutService } from "../rollout-service.ts";
import { ServiceError } from "../service-error.ts";
import { createServiceMetrics, type ServiceMetrics } from "./service-metrics.ts";
import { columnReply } from "./column-reply.ts";
import { addTrainerLogprobs, diagnoseLive } from "./doctor-call.ts";
import { openApi } from "./open-api.ts";
import { readCall, readCursor, readParameters } from "./read-call.ts";
import { formParameters, readForm } from "./read-form.ts";

/** The rights of callers, and the service's own parts. */
export interface ServiceAppOptions {
  /** Turnwright's version. */
  readonly version: string;
  /** The token that each call needs. Absent: calls need no token. */
  readonly token?: string;
  /** True if the `Host` and `Origin` of each call must be this machine (see `AccessRules`). */
  readonly checksHost: boolean;
  /** Removes secrets from error messages. */
  readonly redactor: Redactor;
  /** The adapter for NeMo Gym. Absent: its routes do not exist. */
  readonly gym?: GymAgent;
  /** Called with errors that are bugs of this package. */
  readonly onTrouble?: (error: unknown) => void;
}

/**
 * Maximum number of open streams. Each has an open file and a block of memory. A trainer may open
 * one for each attempt that it waits for, in several processes.
 */
const maxStreams = 512;

type Handler = (context: Context) => Response | Promise<Response>;

/** Creates the HTTP application of the service. docs/service.md describes its paths. */
export function createServiceApp(service: RolloutService, options: ServiceAppOptions): Hono {
  const app = new Hono();
  const errorResponse = (error: ServiceError, allow?: string): Response =>
    respondWith(error, { redactor: options.redactor, ...(allow !== undefined && { allow }) });
  app.use(async ({ req }, next) => {
    requireCaller(req.raw, options);
    await next();
  });
  for (const [path, methods] of Object.entries(routesOf(service, options))) {
    for (const [method, handler] of Object.entries(methods)) app.on(method, path, handler);
    const allowed = Object.keys(methods).join(", ");
    app.all(path, ({ req }) => {
      const message = `There is no ${req.method} here: expected ${allowed}`;
      return errorResponse(new ServiceError("bad-method", message), allowed);
    });
  }
  app.notFound(() => errorResponse(new ServiceError("not-found", "There is no such path")));
  app.onError((error) => {
    const known = toServiceError(error);
    if (known.code === "internal") options.onTrouble?.(error);
    return errorResponse(known);
  });
  return app;
}

function requireCaller(request: Request, { token, checksHost }: ServiceAppOptions): void {
  requireLocal(request, { checksHost, opensSessions: false });
  if (token === undefined || isSame(bearerOf(request.headers) ?? "", token)) return;
  throw new ServiceError("unauthorized", "The token is missing or wrong");
}

function routesOf(
  service: RolloutService,
  { version, gym }: ServiceAppOptions,
): Readonly<Record<string, Readonly<Record<string, Handler>>>> {
  let metrics: ServiceMetrics | undefined;
  const plain = ({ req }: Context): void => void readParameters(new URL(req.url), []);
  return {
    "/v1/batches": {
      POST: async (context) => {
        plain(context);
        const request = readBatchRequest(await readCall(context.req.raw));
        const { status, isNew } = await service.submit(request);
        return context.json(status, isNew ? 201 : 200);
      },
      GET: (context) => {
        plain(context);
        return context.json({ batches: service.batches });
      },
      DELETE: async (context) => {
        plain(context);
        return context.json({ batches: await service.cancelAll() });
      },
    },
    "/v1/batches/:id": {
      GET: ({ req, json }) => json(service.batch(req.param("id") ?? "")),
      DELETE: async ({ req, json }) => json(await service.cancel(req.param("id") ?? "")),
    },
    "/v1/clear": {
      POST: async ({ req, json }) => {
        const body = await readCall(req.raw);
        checkMembers(body, { keyPrefix: textOf(1, 200) });
        const { keyPrefix } = body as { readonly keyPrefix: string };
        return json({ keyPrefix, cancelledBatches: await service.clear(keyPrefix) });
      },
    },
    "/v1/groups": { GET: groupsHandler(service) },
    "/v1/columns/:hash": { GET: columnsHandler(service) },
    "/v1/groups/ack": {
      POST: async ({ req, json }) => {
        const body = await readCall(req.raw);
        const rules = { cursor: optional(wholeNumber(0)), batch: optional(textOf(1, 200)) };
        checkMembers(body, rules);
        const acknowledged = body as Acknowledgement;
        const cursor = await service.acknowledge(acknowledged);
        return json({ ...acknowledged, cursor });
      },
    },
    "/v1/trainer-logprobs": {
      POST: async (context) => {
        plain(context);
        return context.json(await addTrainerLogprobs(service.doctor, context.req.raw));
      },
    },
    "/v1/doctor": {
      GET: async ({ req, json }) => json(await diagnoseLive(service.doctor, new URL(req.url))),
    },
    "/v1/policy": {
      POST: async ({ req, json }) => {
        const body = await readCall(req.raw);
        checkMembers(body, {
          version: wholeNumber(0),
          weights: optional(textOf(1, 4096)),
          restart: optional({
            expected: "true or false",
            isRight: (is) => typeof is === "boolean",
          }),
        });
        const announced = body as Announcement;
        await service.announce(announced);
        return json({ policyVersion: announced.version });
      },
    },
    "/v1/pause": {
      POST: async ({ req, json }) => {
        checkMembers(await readCall(req.raw, { mayBeEmpty: true }), {});
        await service.pause();
        return json({ state: "paused" });
      },
    },
    "/v1/resume": {
      POST: async ({ req, json }) => {
        checkMembers(await readCall(req.raw, { mayBeEmpty: true }), {});
        await service.resume();
        return json({ state: "running" });
      },
    },
    "/v1/health": {
      GET: ({ json }) => {
        const { state, ...health } = service.health;
        return json({ state, turnwright: version, ...health });
      },
    },
    "/metrics": {
      GET: async ({ body }) => {
        // Created at the first request, because it watches the process from then on.
        metrics ??= createServiceMetrics(service);
        return body(await metrics.text(), 200, { "content-type": metrics.contentType });
      },
    },
    ...(gym && {
      "/run": {
        POST: async ({ req }: Context) => {
          const { signal } = req.raw;
          const answer = await gym.run(service, await readCall(req.raw), { signal });
          // Routes take megabytes.
          const { blocks } = await encodeLine(answer);
          return new Response(Buffer.concat(blocks), {
            headers: { "content-type": "application/json" },
          });
        },
      },
      "/aggregate_metrics": {
        POST: async ({ req, json }: Context) => json(aggregateMetrics(await readCall(req.raw))),
      },
    }),
    "/openapi.json": { GET: ({ json }) => json(openApi(version)) },
  };
}

function groupsHandler(service: RolloutService): Handler {
  let openCount = 0;
  return ({ req }) => {
    const names = ["cursor", "batch", ...formParameters];
    const { cursor, batch, ...rest } = readParameters(new URL(req.url), names);
    const form = readForm(rest);
    if (openCount >= maxStreams) {
      const message = `${openCount} streams of groups are open, at most ${maxStreams} may be`;
      throw new ServiceError("queue-full", message);
    }
    const wish = { cursor: readCursor(cursor), ...withoutUndefined({ batch, form }) };
    const lines = streamGroups(service, wish, {
      onEnd: () => {
        openCount -= 1;
      },
    });
    openCount += 1;
    return new Response(lines, {
      headers: { "content-type": "application/x-ndjson", "cache-control": "no-store" },
    });
  };
}

function columnsHandler(service: RolloutService): Handler {
  let openCount = 0;
  return async ({ req }) => {
    readParameters(new URL(req.url), []);
    if (openCount >= maxStreams) {
      const message = `${openCount} columns are being sent, at most ${maxStreams} may be`;
      throw new ServiceError("queue-full", message);
    }
    const column = await service.columns.find(req.param("hash") ?? "");
    const reply = columnReply(column, req.header("range"), () => {
      openCount -= 1;
    });
    openCount += 1;
    // The body of an answer to HEAD is not read.
    if (req.raw.method === "HEAD") await reply.body?.cancel();
    return reply;
  };
}

function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof ClientError && error.kind === "forbidden") {
    return new ServiceError("forbidden", error.message);
  }
  return new ServiceError("internal", `A bug of the service: ${describeError(error)}`);
}

function respondWith(
  error: ServiceError,
  { redactor, allow }: { readonly redactor: Redactor; readonly allow?: string },
): Response {
  const { status, code, message, retryAfterS, size } = error;
  const headers = new Headers({ "content-type": "application/json" });
  if (retryAfterS !== undefined) headers.set("retry-after", String(retryAfterS));
  if (code === "unauthorized") headers.set("www-authenticate", "Bearer");
  if (allow !== undefined) headers.set("allow", allow);
  if (size !== undefined) headers.set("content-range", `bytes */${size}`);
  if (code === "bad-encoding") headers.set("accept-encoding", knownCodings);
  const body = JSON.stringify({ error: { code, message: redactor.text(message) } });
  return new Response(body, { status, headers });
}
