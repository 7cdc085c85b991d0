import type { ContentBlockParam, ToolResultBlockParam } from "@anthropic-ai/sdk/resources/messages";
import type {
  ChatCompletionContentPart,
  ChatCompletionContentPartRefusal,
} from "openai/resources/chat/completions";
import type {
  ResponseFunctionCallOutputItem,
  ResponseInputContent,
  ResponseOutputMessage,
  ResponseReasoningItem,
} from "openai/resources/responses/responses";
import { describe, expect, test } from "vitest";
import { ClientError } from "../client-error.ts";
import type { PartUse } from "./content-text.ts";
import {
  chatParts,
  chatSaidParts,
  messagesParts,
  responsesParts,
  responsesSaidParts,
  responsesThoughtParts,
} from "./message-parts.ts";
import { dialects } from "./registry.ts";

type Table<Part extends { readonly type: string }> = Readonly<Record<Part["type"], PartUse>>;

type ChatSaid = ChatCompletionContentPart | ChatCompletionContentPartRefusal;
type ResponsesSaid = ResponseOutputMessage["content"][number];
type ResponsesThought =
  | NonNullable<ResponseReasoningItem["content"]>[number]
  | ResponseReasoningItem["summary"][number];
type ResultBlock = Exclude<ToolResultBlockParam["content"], string | undefined>[number];

/** The tables, typed by the vendors' unions, so that a new member fails the compilation. */
const tables = {
  chatAsked: chatParts satisfies Table<ChatCompletionContentPart>,
  chatSaid: { ...chatParts, ...chatSaidParts } satisfies Table<ChatSaid>,
  responsesAsked: responsesParts satisfies Table<
    ResponseInputContent | ResponseFunctionCallOutputItem
  >,
  responsesSaid: responsesSaidParts satisfies Table<ResponsesSaid>,
  responsesThought: responsesThoughtParts satisfies Table<ResponsesThought>,
  results: messagesParts satisfies Table<ResultBlock>,
};

// @ts-expect-error A member that no table has does not compile.
tables.chatAsked satisfies Table<ChatCompletionContentPart | { readonly type: "hologram" }>;

/** Blocks of Messages by the roles that send them. `none` is refused. */
const blocks: Readonly<Record<ContentBlockParam["type"], "user" | "assistant" | "both" | "none">> =
  {
    text: "both",
    tool_result: "user",
    tool_use: "assistant",
    thinking: "assistant",
    redacted_thinking: "assistant",
    image: "none",
    document: "user",
    search_result: "user",
    container_upload: "none",
    server_tool_use: "none",
    web_search_tool_result: "none",
    web_fetch_tool_result: "none",
    code_execution_tool_result: "none",
    bash_code_execution_tool_result: "none",
    text_editor_code_execution_tool_result: "none",
    tool_search_tool_result: "none",
  };

const user = { role: "user", content: "Go" };

/** Returns the roles and texts of messages, or the refusal. */
function read(dialect: keyof typeof dialects, messages: readonly object[]): string {
  const body = dialect === "responses" ? { input: messages } : { messages };
  try {
    const requested = dialects[dialect].decode(body);
    return requested.messages
      .map((message) => {
        const thought =
          message.role === "assistant" && message.reasoning !== undefined
            ? `(${message.reasoning}) `
            : "";
        return `${message.role}: ${thought}${message.content}`;
      })
      .join("; ");
  } catch (error) {
    if (error instanceof ClientError) return error.message;
    throw error;
  }
}

const members = { text: "said", refusal: "declined", thinking: "thought", tool_use_id: "a" };

/** Further members of documents and search results. */
const quotes: Readonly<Record<string, object>> = {
  document: { title: "Refunds", context: "2026", source: { type: "text", data: "30 days" } },
  search_result: {
    title: "Refunds",
    source: "https://shop.example/refunds",
    content: [
      { type: "text", text: "30 days" },
      { type: "text", text: "No fee" },
    ],
  },
};
/** The shown text of a result's parts, by their treatment. */
const shownParts: Readonly<Partial<Record<PartUse, string>>> = {
  text: "said",
  document: "Refunds\n2026\n30 days",
  "search-result": "Refunds\nhttps://shop.example/refunds\n30 days\nNo fee",
};

describe("every part of a message is shown or refused", () => {
  test.each([
    ["chat", "user", tables.chatAsked],
    ["chat", "system", tables.chatAsked],
    ["chat", "assistant", tables.chatSaid],
    ["responses", "user", tables.responsesAsked],
    ["responses", "assistant", tables.responsesSaid],
  ] as const)("in %s of the role %s", (dialect, role, table) => {
    for (const [type, use] of [...Object.entries(table), ["hologram", "refused"]]) {
      const field = dialect === "responses" ? "input" : "messages";
      const shown = {
        text: `${role}: said`,
        refusal: `${role}: declined`,
        thought: `${role}: (thought) `,
        sealed: `${role}: `,
        refused: `Cannot read ${field}[1].content[0]: a part of type "${type}" cannot be shown to the policy; send its content as text`,
        // No other protocol has these.
        document: "",
        "search-result": "",
      }[use as PartUse];
      const message = { role, content: [{ ...members, type }] };
      expect([type, read(dialect, [user, message, user])]).toEqual([
        type,
        use === "refused" ? shown : `user: Go; ${shown}; user: Go`,
      ]);
    }
  });

  test("in Messages", () => {
    for (const role of ["user", "assistant"] as const) {
      for (const [type, by] of [...Object.entries(blocks), ["hologram", "none"]]) {
        const block = { ...members, ...quotes[type ?? ""], id: "a", name: "look", input: {}, type };
        const outcome = read("messages", [user, { role, content: [block] }, user]);
        const refusal = `Cannot read messages[1].content[0]: a block of type "${type}" cannot be shown to the policy; send its content as text`;
        const isRead = by === "both" || by === role;
        expect([type, role, outcome === refusal]).toEqual([type, role, !isRead]);
      }
    }
  });

  test("in results, and in the system's blocks", () => {
    for (const [type, use] of [...Object.entries(tables.results), ["hologram", "refused"]]) {
      const part = { ...members, ...quotes[type ?? ""], type };
      const result = { type: "tool_result", tool_use_id: "a", content: [part] };
      const outcome = read("messages", [{ role: "user", content: [result] }, user]);
      const refusal = `Cannot read messages[0].content[0].content[0]: a part of type "${type}" cannot be shown to the policy; send its content as text`;
      expect(outcome).toBe(
        use === "refused" ? refusal : `tool: ${shownParts[use as PartUse]}; user: Go`,
      );
    }
  });

  test("a document of parts is shown, and a file, an address and an image in it are refused", () => {
    const document = (source: object): string =>
      read("messages", [
        {
          role: "user",
          content: [
            { type: "document", source },
            { type: "text", text: "Go" },
          ],
        },
      ]);
    expect(document({ type: "content", content: "30 days" })).toBe("user: 30 days\nGo");
    const texts = [
      { type: "text", text: "30" },
      { type: "text", text: "days" },
    ];
    expect(document({ type: "content", content: texts })).toBe("user: 30\ndays\nGo");
    const refusal = (place: string, what: string) =>
      `Cannot read messages[0].content[0]${place}: ${what} cannot be shown to the policy; send its content as text`;
    for (const type of ["base64", "url", "file"]) {
      expect(document({ type, data: "JVBE" })).toBe(refusal("", 'a block of type "document"'));
    }
    expect(document({ type: "content", content: [{ type: "image" }] })).toBe(
      refusal(".source.content[0]", 'a part of type "image"'),
    );
  });

  test("refuses every unknown item of Responses", () => {
    for (const type of [
      "file_search_call",
      "computer_call",
      "computer_call_output",
      "web_search_call",
      "image_generation_call",
      "code_interpreter_call",
      "mcp_list_tools",
      "mcp_call",
      "mcp_approval_request",
      "mcp_approval_response",
      "compaction",
      "hologram",
    ]) {
      expect(read("responses", [user, { ...members, type }])).toBe(
        `Cannot read input[1].type: there is no item of type "${type}"; leave it out, or send what it says as a message`,
      );
    }
  });
});

describe("a refusal", () => {
  const declined = "I cannot help with that.";

  test("counts as the assistant's text, as a part and as a member", () => {
    const part = { role: "assistant", content: [{ type: "refusal", refusal: declined }] };
    const said = `user: Go; assistant: ${declined}; user: Go`;
    expect(read("chat", [user, part, user])).toBe(said);
    expect(read("responses", [user, { type: "message", ...part }, user])).toBe(said);
    const member = { role: "assistant", content: null, refusal: declined };
    expect(read("chat", [user, member, user])).toBe(said);
    expect(read("chat", [user, { ...part, refusal: declined }, user])).toBe(said);
    expect(read("chat", [user, { ...member, content: "Well." }, user])).toBe(
      `user: Go; assistant: Well.\n${declined}; user: Go`,
    );
  });

  test("that is not text is refused with its path", () => {
    const part = { type: "refusal", text: declined };
    expect(read("chat", [user, { role: "assistant", content: [part] }])).toBe(
      "Cannot read messages[1].content[0].refusal: expected text, not nothing",
    );
  });
});

describe("reasoning of other models", () => {
  test.each([
    ["a text", { type: "thinking", thinking: "Hm.", signature: "s" }],
    ["a list of texts", { type: "thinking", thinking: [{ type: "text", text: "Hm." }] }],
    ["a part of reasoning", { type: "reasoning", reasoning: "Hm." }],
    ["a summary", { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] }],
    ["a part with text", { type: "reasoning", text: "Hm." }],
  ])("is decoded from %s", (_, part) => {
    const message = { role: "assistant", content: [part, { type: "text", text: "Yes" }] };
    expect(read("chat", [message])).toBe("assistant: (Hm.) Yes");
  });
});

test("audio of an assistant is refused, absent audio is not", () => {
  const message = { role: "assistant", content: null, audio: { id: "audio_1" } };
  expect(read("chat", [user, message])).toBe(
    "Cannot read messages[1].audio: audio cannot be shown to the policy; send its transcript as text",
  );
  expect(read("chat", [user, { ...message, audio: null }])).toBe("user: Go; assistant: ");
});
