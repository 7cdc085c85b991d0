import type { Hono } from "hono";
import { writeCompactJson } from "../../json/exact-json.ts";
import type { TaskEndpoint } from "../agent/task-endpoint.ts";
import { ClientError } from "../client-error.ts";
import { requireKnown, textOf } from "../dialects/read-body.ts";
import type { Gateway } from "../gateway.ts";
import type { GatewaySession } from "../session/session.ts";
import { findSession, type AccessRules } from "./access.ts";
import { readJsonBody } from "./read-request.ts";

/**
 * Returns the task endpoint of a session's attempt, or `undefined` before and after the attempt.
 */
export type EndpointOf = (session: GatewaySession) => TaskEndpoint | undefined;

/**
 * Adds the routes through which an agent in another process reaches its task, tools and user: `GET
 * task`, `POST tools/NAME` with the arguments as body, `POST say` with `{"text": …}`.
 */
export function addTaskRoutes(
  app: Hono,
  {
    gateway,
    rules,
    endpointOf,
  }: {
    readonly gateway: Gateway;
    readonly rules: AccessRules;
    readonly endpointOf: EndpointOf;
  },
): void {
  const find = async (request: Request, inUrl: string | undefined): Promise<TaskEndpoint> => {
    const session = await findSession(gateway, request, { inUrl, rules });
    const endpoint = endpointOf(session);
    if (endpoint !== undefined) return endpoint;
    throw new ClientError("finished", "The attempt is over, or has not started");
  };
  for (const base of ["", "/s/:token"]) {
    app.get(`${base}/task`, async ({ req, body }) => {
      const { description } = await find(req.raw, req.param("token"));
      const { task, policyText, firstUserText, tools } = description;
      const about = JSON.stringify({ task, policyText, firstUserText });
      const offered = writeCompactJson(tools.map(({ openai }) => openai));
      const text = `${about.slice(0, -1)},"tools":${offered}}`;
      return body(text, 200, { "content-type": "application/json" });
    });
    app.post(`${base}/tools/:name`, async ({ req, json }) => {
      const endpoint = await find(req.raw, req.param("token"));
      const given = await readJsonBody(req.raw, { isExact: true });
      return json(await endpoint.call(req.param("name") ?? "", given));
    });
    app.post(`${base}/say`, async ({ req, json }) => {
      const endpoint = await find(req.raw, req.param("token"));
      const given = await readJsonBody(req.raw);
      requireKnown(given, ["text"]);
      return json({ text: (await endpoint.say(textOf(given["text"], "text"))) ?? null });
    });
  }
}
