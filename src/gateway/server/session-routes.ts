import type { Hono } from "hono";
import {
  invalid,
  objectOf,
  optionalNumber,
  optionalText,
  requireKnown,
  unreadMembers,
  type Json,
} from "../dialects/read-body.ts";
import type { Gateway } from "../gateway.ts";
import type { SessionRequest } from "../session/session-store.ts";
import type { GatewaySession, SessionReward } from "../session/session.ts";
import { pathTo } from "../tree/record-path.ts";
import { requireAdmin, requireOwner, type AccessRules } from "./access.ts";
import { readJsonBody } from "./read-request.ts";

/** Adds the routes that open, reward, show and end sessions. */
export function addSessionRoutes(app: Hono, gateway: Gateway, rules: AccessRules): void {
  const owned = (request: Request, id: string): GatewaySession => {
    requireOwner(request, rules, { gateway, sessionId: id });
    return gateway.store.requireById(id);
  };

  app.post("/sessions", async ({ req, json }) => {
    requireAdmin(req.raw, rules, gateway);
    const requested = readSessionRequest(await readJsonBody(req.raw));
    const opened = await gateway.openSession(requested);
    const base = `${new URL(req.url).origin}/s/${opened.token}`;
    return json({ ...opened, urls: { openai: `${base}/v1`, anthropic: base } }, 201);
  });
  app.get("/sessions/:id", ({ req, json }) =>
    json(describeSession(owned(req.raw, req.param("id")))),
  );
  app.get("/sessions/:id/samples", ({ req, json }) =>
    json({ samples: gateway.samples(owned(req.raw, req.param("id"))) }),
  );
  app.post("/sessions/:id/reward", async ({ req, json }) => {
    const session = owned(req.raw, req.param("id"));
    const reward = readReward(await readJsonBody(req.raw));
    if (reward === undefined) throw invalid("reward", "expected a number");
    await gateway.reward(session, reward);
    return json({ sessionId: session.identity.sessionId, ...reward });
  });
  app.post("/sessions/:id/finish", async ({ req, json }) => {
    const session = owned(req.raw, req.param("id"));
    const body = await readJsonBody(req.raw);
    const reward = readReward(body);
    const failed = optionalText(body["failure"], "failure");
    const failure = { party: "agent", code: "agent/reported", message: failed ?? "" } as const;
    const {
      segments,
      messages: _messages,
      turns: _turns,
      ...episode
    } = await gateway.finish(session, {
      ...(reward !== undefined && { reward }),
      ...(failed !== undefined && { failure }),
    });
    return json({ ...episode, rows: segments.length });
  });
  app.get("/stats", ({ req, json }) => {
    requireAdmin(req.raw, rules, gateway);
    return json(gateway.counts);
  });
  for (const [path, act] of [
    ["/pause", () => gateway.pause()],
    ["/resume", () => gateway.resume()],
  ] as const) {
    app.post(path, ({ req, json }) => {
      requireAdmin(req.raw, rules, gateway);
      act();
      return json({ isPaused: gateway.counts.isPaused });
    });
  }
}

function readSessionRequest(body: Json): SessionRequest {
  requireKnown(body, ["taskId", "groupId", "sampleIndex", "seed", "metadata"]);
  const { metadata } = body;
  const taskId = optionalText(body["taskId"], "taskId");
  const groupId = optionalText(body["groupId"], "groupId");
  const sampleIndex = optionalNumber(body["sampleIndex"], "sampleIndex", { min: 0, whole: true });
  const seed = optionalNumber(body["seed"], "seed", { min: 0, whole: true });
  return {
    ...(taskId !== undefined && { taskId }),
    ...(groupId !== undefined && { groupId }),
    ...(sampleIndex !== undefined && { sampleIndex }),
    ...(seed !== undefined && { seed }),
    ...(metadata !== undefined && { metadata: objectOf(metadata, "metadata") }),
  };
}

function readReward(body: Json): SessionReward | undefined {
  const reward = optionalNumber(body["reward"], "reward", { min: -Infinity });
  const { reward: _reward, failure: _failure, details, ...others } = body;
  if (reward === undefined) {
    const [stray] = unreadMembers(body, "", ["failure"]);
    if (stray === undefined) return undefined;
    throw invalid(
      stray,
      "there is no reward beside it, expected reward, with details, components or turnRewards",
    );
  }
  // `gateway.reward()` checks the other members.
  return {
    ...others,
    reward,
    ...(details !== undefined && { details: objectOf(details, "details") }),
  };
}

/** Returns a session's tree for JSON, without token ids. */
function describeSession({ identity, tree, lineage, reward, activeCount }: GatewaySession): object {
  const { tokenHash: _sampling, ownerHash: _owner, ...about } = identity;
  return {
    ...about,
    ...(reward !== undefined && { reward }),
    activeCount,
    turns: tree.nodes.map((node) => ({
      index: node.index,
      parent: node.parent?.index ?? null,
      ...(node.cause !== undefined && { cause: node.cause }),
      depth: pathTo(node).length - 1,
      notes: node.record.notes,
      isDelivered: node.isDelivered,
      isTrainable: node.record.isTrainable,
      model: node.record.model,
      dialect: node.record.dialect,
      labels: node.record.labels,
      ...lineage[node.index]!,
      finish: node.record.finish,
      promptTokenCount: node.record.promptTokenCount,
      sampledTokenCount: node.record.generation.outputIds.length,
      parts: node.turn.parts,
    })),
  };
}
