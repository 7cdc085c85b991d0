import { pythonStrip } from "../../packages/python-values/src/text/strip.ts";
import { afterLabel, plainLabel } from "./after-label.ts";
import type { ModelUserOptions, UserStrategy } from "./model-conversation.ts";
import { modelUser, promptsOf, repairsOf } from "./model-conversation.ts";
import { hasStopMarker, STOP_MARKER } from "./stop-marker.ts";
import type { User } from "./user.ts";
import type { UserRepairChoice } from "./user-repairs.ts";
import { isRepaired } from "./user-repairs.ts";

/** Creates a user that a model plays with a thought before each line. */
export function reactUser(options: ModelUserOptions): User {
  return modelUser(reactStrategy(options), options);
}

/**
 * The strategy of one call a line with a thought. The line is read from the reply, and the complete
 * reply is remembered.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py (`ReactUserSimulationEnv`).
 */
export function reactStrategy(options: ModelUserOptions): UserStrategy {
  const repair = repairsOf(options);
  return {
    name: "react",
    systemPrompt: promptsOf(options).react,
    async nextLine({ memory, ask }) {
      const content = await ask(memory);
      memory.push({ role: "assistant", content });
      return readReactLine(content, repair);
    },
  };
}

const thoughtLabel = "Thought:";
const responseLabel = "User Response:";

/**
 * Reads the line from a reply. As in the original, a stop marker anywhere counts, and everything
 * after `Thought:` is sent, unless these behaviours are repaired.
 *
 * @throws RolloutError `user/bad-reply` if the label is missing or repeated.
 */
function readReactLine(written: string, repair: UserRepairChoice): string {
  const mayRepeat = isRepaired(repair, "labels");
  const reply = mayRepeat ? plainLabel(plainLabel(written, thoughtLabel), responseLabel) : written;
  if (isRepaired(repair, "stop-in-thought") && reply.includes(responseLabel)) {
    if (hasStopMarker(readResponse(reply, repair), repair)) return STOP_MARKER;
  } else if (hasStopMarker(reply, repair)) {
    return STOP_MARKER;
  }
  if (!isRepaired(repair, "thought-leak") && reply.includes(thoughtLabel)) {
    return afterLabel(reply, thoughtLabel, { mayRepeat });
  }
  return readResponse(reply, repair);
}

/** Returns the response without a later thought, which some models add. */
function readResponse(reply: string, repair: UserRepairChoice): string {
  const mayRepeat = isRepaired(repair, "labels");
  const response = afterLabel(reply, responseLabel, { mayRepeat });
  if (!isRepaired(repair, "thought-leak")) return response;
  return pythonStrip(response.split(laterThought, 1)[0]!);
}

const laterThought = /^Thought:/m;
