import { RolloutError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import { bindFor, type BoundTemplate } from "../bound-template.ts";
import type { ControlTokenGuard } from "../guard/control-token-guard.ts";
import { renderDeltaText } from "./environment-delta.ts";
import type { StopIds } from "./join-delta.ts";
import { joinDelta } from "./join-delta.ts";
import type { EnvironmentKind, MeasuredDelta } from "./measure-delta.ts";
import { roleOf, toTemplateMessage, toTemplateTools } from "../openai-messages.ts";
import type { EnvironmentDelta, Renderer } from "../renderer.ts";
import { unseal } from "../guard/seal.ts";

/** The parts of a delta encoder. */
interface DeltaEncoderParts {
  readonly template: BoundTemplate;
  readonly measured: MeasuredDelta;
  readonly guard: ControlTokenGuard;
  /** Ids of the literals that can end an assistant turn in the template's text. */
  readonly closerIds: ReadonlySet<number>;
  readonly stopIds: StopIds;
}

/** A delta to which the text is added last. */
type JoinedDelta = Omit<EnvironmentDelta, "text"> & { text?: string };

/** Returns the `delta()` of a renderer. */
export function createDeltaEncoder(parts: DeltaEncoderParts): Renderer["delta"] {
  const { template, measured, guard, closerIds, stopIds } = parts;
  const { plan, supports } = measured;
  return async (change) => {
    const { assistant, environment, tools, variables, now, lastSampledId } = change;
    // Each step may take milliseconds for a long answer, so other work runs in between.
    if (isTurnOver()) await takeTurn();
    // Converts a long history only if the delta needs it.
    const before = plan.base === "full" ? change.history.map(toTemplateMessage) : [];
    const messages = [...before, toTemplateMessage(assistant)];
    const start = messages.length;
    for (const message of environment) messages.push(toTemplateMessage(message));
    requireSupport(messages, start, supports);
    const sealed = guard.seal(
      messages,
      plan.needsTools ? toTemplateTools(tools) : null,
      () => change.history,
    );
    const bound = bindFor({ variables, now }, template);
    if (isTurnOver()) await takeTurn();
    const text = renderDeltaText(bound, plan, {
      history: sealed.messages.slice(0, start - 1),
      assistant: sealed.messages[start - 1] as PyDict,
      environment: sealed.messages.slice(start),
      tools: sealed.tools,
    });
    if (isTurnOver()) await takeTurn();
    const encoded = guard.encode(text, sealed.seal);
    const ids = encoded instanceof Promise ? await encoded : encoded;
    if (isTurnOver()) await takeTurn();
    const anchor = ids[0];
    if (anchor === undefined || !closerIds.has(anchor)) {
      throw new RolloutError(
        "internal/delta",
        `Cannot join the text after the sampled turn: its first id is ${anchor}, expected one of ` +
          [...closerIds].join(", "),
      );
    }
    const delta: JoinedDelta = joinDelta(ids, lastSampledId, stopIds);
    delta.text = sealed.seal === undefined ? text : await unseal(text, sealed.seal);
    return delta as EnvironmentDelta;
  };
}

/** Refuses message kinds for which no correct delta was measured. Checks the messages from `start` on. */
function requireSupport(
  messages: readonly PyDict[],
  start: number,
  supports: MeasuredDelta["supports"],
): void {
  let toolCount = 0;
  for (let place = start; place < messages.length; place++) {
    if (roleOf(messages[place] as PyDict) === "tool") toolCount += 1;
  }
  for (let place = start; place < messages.length; place++) {
    const kind = kindOf(roleOf(messages[place] as PyDict), toolCount);
    if (!supports[kind]) {
      throw new RolloutError(
        "internal/delta",
        `Cannot add ${kindNames[kind]} after a sampled turn: the chat template does not render ` +
          "them there (see its capability card)",
      );
    }
  }
  if (messages.length === start) {
    throw new RolloutError(
      "internal/delta",
      "Cannot continue after a sampled turn without a message of the environment",
    );
  }
}

const kindNames: Readonly<Record<EnvironmentKind, string>> = {
  system: "system messages",
  user: "user messages",
  tool: "tool results",
  parallelTools: "several tool results",
};

function kindOf(role: string, toolCount: number): EnvironmentKind {
  if (role === "tool") return toolCount > 1 ? "parallelTools" : "tool";
  return role === "system" || role === "developer" ? "system" : "user";
}
