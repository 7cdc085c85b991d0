import type { Engine } from "../engine/engine.ts";
import type { Redactor } from "../internal/redactor.ts";
import type { ChatModel } from "../user/chat-model.ts";
import type { User, UserSession } from "../user/user.ts";

/**
 * The engine, without secrets in the errors that it throws: a server that repeats the key which it does
 * not accept would otherwise have it written wherever a failure is told of.
 */
export function redactEngine(engine: Engine, redactor: Redactor): Engine {
  const score = engine.score?.bind(engine);
  return {
    kind: engine.kind,
    generate: (request, options) => redactor.guard(() => engine.generate(request, options)),
    ...(score === undefined
      ? {}
      : {
          score: (request, options) => redactor.guard(() => score(request, options)),
        }),
    describe: (options) => redactor.guard(() => engine.describe(options)),
    close: () => engine.close(),
  };
}

/** The user, without secrets in the errors that it throws. */
export function redactUser(user: User, redactor: Redactor): User {
  return {
    ...user,
    open: (task, options) => redactSession(user.open(task, options), redactor),
  };
}

function redactSession(session: UserSession, redactor: Redactor): UserSession {
  const retake = session.retake?.bind(session);
  return {
    begin: (options) => redactor.guard(() => session.begin(options)),
    reply: (agentText, options) => redactor.guard(() => session.reply(agentText, options)),
    ...(retake === undefined ? {} : { retake: (options) => redactor.guard(() => retake(options)) }),
    usage: () => session.usage(),
  };
}

/** The chat model, without secrets in the errors that it throws. */
export function redactChatModel(model: ChatModel, redactor: Redactor): ChatModel {
  return {
    name: model.name,
    complete: (request, options) => redactor.guard(() => model.complete(request, options)),
  };
}
