import type { Hono } from "hono";
import { writeCompactJson } from "../../python/json/exact-json.ts";
import type { WorldDesk } from "../agent/world-desk.ts";
import { ClientError } from "../client-error.ts";
import { textOf } from "../dialects/read-body.ts";
import type { Gateway } from "../gateway.ts";
import type { GatewaySession } from "../session/session.ts";
import { findSession, type AccessRules } from "./access.ts";
import { readJsonBody } from "./read-request.ts";

/** The desk of a session whose agent plays a task; `undefined` where there is none by now. */
export type DeskOf = (session: GatewaySession) => WorldDesk | undefined;

/**
 * The task, the tools and the user of an attempt over HTTP, for agents in a process of their own:
 * `GET task`, `POST tools/NAME` with the arguments as body, `POST say` with `{"text": …}`.
 */
export function addDeskRoutes(
  app: Hono,
  {
    gateway,
    rules,
    deskOf,
  }: {
    readonly gateway: Gateway;
    readonly rules: AccessRules;
    readonly deskOf: DeskOf;
  },
): void {
  const find = async (request: Request, inUrl: string | undefined): Promise<WorldDesk> => {
    const session = await findSession(gateway, request, { inUrl, rules });
    const desk = deskOf(session);
    if (desk !== undefined) return desk;
    throw new ClientError("finished", "The attempt is over, or has not begun");
  };
  for (const base of ["", "/s/:token"]) {
    app.get(`${base}/task`, async ({ req, body }) => {
      const { about } = await find(req.raw, req.param("token"));
      const { task, policyText, firstUserText, tools } = about;
      const told = JSON.stringify({ task, policyText, firstUserText });
      const offered = writeCompactJson(tools.map(({ openai }) => openai));
      const text = `${told.slice(0, -1)},"tools":${offered}}`;
      return body(text, 200, { "content-type": "application/json" });
    });
    app.post(`${base}/tools/:name`, async ({ req, json }) => {
      const desk = await find(req.raw, req.param("token"));
      const given = await readJsonBody(req.raw, { isExact: true });
      return json(await desk.call(req.param("name") ?? "", given));
    });
    app.post(`${base}/say`, async ({ req, json }) => {
      const desk = await find(req.raw, req.param("token"));
      const { text } = await readJsonBody(req.raw);
      return json({ text: (await desk.say(textOf(text, "text"))) ?? null });
    });
  }
}
