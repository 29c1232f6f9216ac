#!/usr/bin/env python3
"""Makes chat_templates.json: templates in the style of those that models come with, and what transformers renders of messages.

usage: make_chat_templates.py [CASES [SEED]] > chat_templates.json     (needs transformers and jinja2, from PyPI; made with the
versions that the file names)

Of each template CASES conversations (10) are drawn; "text" null: transformers refuses them.  "snippets" are templates of one
property of the language each.  test_chat_template FILE checks any such file: with more cases than are committed, for one.
"""
import json
import random
import sys

import jinja2
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama_2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]"
    "['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in "
    "loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must "
    "alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content "
    "= '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}"
    "{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif "
    "message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama_3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
    "message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = "
    "bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant"
    "<|end_header_id|>\n\n' }}{% endif %}",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
""",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation "
    "roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = "
    "'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "mistral": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- This block checks for alternating user/assistant messages, skipping tool calling messages #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
""",
    "phi_3": "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + "
    "message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif "
    "message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if "
    "add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
    "alpaca": """{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + '\n\n' }}{% set rest = messages[1:] %}{% else %}
{% set rest = messages %}Below is an instruction that describes a task. Write a response that completes the request.

{% endif %}
{% for m in rest -%}
  {% if m.role == 'user' %}### Instruction:
{{ m.content }}

{% else %}### Response:
{{ m.content }}{{ eos_token if not loop.last }}

{% endif %}
{%- endfor %}
{% if add_generation_prompt %}### Response:
{% endif %}
""",
    "vicuna": """{%- set sep = [' ', eos_token] -%}
{%- if messages and messages[0].role == 'system' -%}{{ messages[0].content ~ sep[0] }}{%- endif -%}
{%- for m in messages if m.role != 'system' -%}
{{ m.role.upper() ~ ': ' ~ m.content.strip() ~ sep[loop.index0 % 2] }}
{%- endfor -%}
{{ 'ASSISTANT:' if add_generation_prompt else '' }}""",
    "deepseek": "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = "
    "namespace(is_first=false, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' "
    "%}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}"
    "{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}"
    "{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{{'<｜User｜>' + "
    "message['content']}}{%- endif %}{%- if message['role'] == 'assistant' and message['content'] is not none %}{% set content = "
    "message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' "
    "+ content + '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endfor -%}{% if add_generation_prompt %}{{'<｜Assistant｜>'}}{% endif %}",
    "qwen_2_5": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen_3": """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "smol_generation": """{% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}
{{ '<|im_start|>system\nYou are a helpful AI assistant<|im_end|>\n' }}
{% endif %}
{% if message.role == 'assistant' %}
<|im_start|>assistant
{% generation %}{% set said = message.content %}{{ said }}<|im_end|>{% endgeneration %}

{% else %}
{{ '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>' }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\n' }}
{%- endif %}""",
    "loop_controls": """{%- for m in messages -%}
  {%- if m.role == 'system' %}{% continue %}{% endif -%}
  {%- if 'stop' in m.content|lower %}[cut]{% break %}{% endif -%}
  {{ loop.index }}/{{ loop.length }} {{ loop.revindex }} {{ m.role|capitalize }}: {{ m['content']|replace('\\n', ' ') }}
  {%- if loop.previtem is defined and loop.previtem.role == m.role %} (again){% endif %}{{ ',' if not loop.last }}
  {%- for k, v in m.items() %} {{ k }}={{ v|tojson }}{% endfor %}
{% else %}
nothing
{%- endfor %}
{{- [messages|length, add_generation_prompt, tools]|join(' ') }}""",
    "falcon": "{% for message in messages %}{% if not loop.first %}{{ '\n' }}{% endif %}{{ message.role.title() }}: {{ message['content']"
    ".replace('\\r\\n', '\\n').replace('\\n\\n', '\\n') }}{% endfor %}{% if add_generation_prompt %}{{ '\n' + 'Assistant:' }}{% endif %}",
}

# One property each; "messages" are as given, or these.
VALUES = [{"role": "user", "content": " a é 水 b ", "n": 7, "list": [1, "x", None, True, {"k": "v\u001f\"\\/\u007f\u2028"}], "none": None, "no": False}]
SNIPPETS = [
    "a\n", "a\n\n", "", "\n", "a\r\nb\rc", "a {# c #}\n b", "  {# c #}\nb", " {#- c -#} b", "x  {%- if true %}  y  {%- endif %}  z",
    "  {% if true %}\n  y\n  {% endif %}\nz", "x {%+ if true %}\n y{% endif +%}\nz", "  {{ 1 }}\n  {{- 2 -}}\n  3", "a {%- set x = 1 -%} \u00a0\u2003 b{{x}}",
    "{% set x = 1 %}\n{% set y = 2 %}\n\n{{x}}{{y}}", "{{ 'it''s' }}|{{ \"a\" 'b' }}|{{ 'x\\ty\\x41\\u00e9\\\\\\'\\q' }}", "{{ {'a': {'b': 1}}.a.b }}{{ [1, 2][1] }}{{ (3) }}{{ (4, 5)[1] }}",
    "{{ 1 + 2 * 3 - 4 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ~ 3 + 4 }} {{ 1_000 }}", "{{ not true or true and false }} {{ 1 == 1 }} {{ true == 1 }} {{ '1' == 1 }} {{ none == false }}",
    "{{ 'a' < 'b' }} {{ 2 >= 3 }} {{ 'é' > 'z' }} {{ 'b' in 'abc' }} {{ 'x' not in ['x'] }} {{ 'role' in messages[0] }} {{ 'q' in nothing }} {{ '' in '' }}",
    "{{ messages[0].list[1:3]|tojson }} {{ messages[0].list[-1]|tojson }} {{ messages[0].list|tojson(indent=2) }}", "{{ messages[0].content[1:4] }}|{{ messages[0].content[-3:] }}|{{ messages[0].content[3] }}|{{ messages[0].content[99] }}",
    "{{ messages[0].list[::-1]|tojson }} {{ messages[0].list[::2]|tojson }} {{ messages[0].list[3:0:-2]|tojson }} {{ messages[0].list[-9:9]|length }}", "{{ messages[0].content|trim }}|{{ messages[0].content|length }}|{{ messages[0].content|upper }}|{{ messages[0].content.strip(' ab') }}",
    "{{ nothing }}|{{ nothing|default('d') }}|{{ ''|default('e', true) }}|{{ ''|default('f') }}|{{ nothing|length }}|{{ none|default('g') }}|{{ nothing is defined }}{{ messages is defined }}{{ nothing is undefined }}",
    "{{ nothing.x }}", "{{ messages[0].x }}|{{ messages[0]['x'] }}|{{ messages[5] }}|{{ messages[0].content.x }}|{{ messages[0].n.x }}|{{ none.x }}", "{{ messages[0].x.y }}",
    "{{ none }} {{ true }} {{ 7 }} {{ messages[0].no }} {{ none is none }} {{ 1 is number }} {{ 'a' is string }} {{ {} is mapping }} {{ [] is iterable }} {{ nothing is iterable }} {{ true is boolean }} {{ false is false }} {{ 1 is true }}",
    "{{ 'a' if false }}|{{ 'a' if true else 'b' }}|{{ 'a' if 0 else 'b' if [] else 'c' }}", "{{ 'a-b-c'.split('-')|join('+') }} {{ 'a-b-c'.split('-', 1)|tojson }} {{ 'abc'.split('-')|tojson }}", "{{ [1, 'a', none, true]|join }} {{ [1, 2]|join(', ') }} {{ nothing|join }}",
    "{{ 'aXbX'|replace('X', '') }} {{ 'xx'.upper() }} {{ 'é水A'|lower }} {{ 'hELLO wORLD'|capitalize }} {{ \"they're bill's\".title() }}", "{{ [1, 2]|first }}{{ [1, 2]|last }}{{ []|first }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}", "{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% for a in [1, 2, 3] if a != 2 %}{{ loop.index }}{{ loop.last }}{{ a }}{% else %}none{% endfor %}", "{% for a in [] %}x{% else %}none{% endfor %}{% for a in nothing %}x{% endfor %}", "{% for c in 'aé' %}{{ c }}.{% endfor %}{% for k in messages[0] %}{{ k }},{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index0 }}{% endfor %}{{ loop }}", "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}{% for k, v in messages[0]|items %}{{ k }}{% endfor %}",
    "{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "{{ messages[0].get('role') }}{{ messages[0].get('z') }}{{ messages[0].get('z', 'y') }}", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}",
    "{{ 'x' + 1 }}", "{{ 1 < 'x' }}", "{{ 1 // 0 }}", "{{ raise_exception('no') }}", "{{ nothing + 'x' }}", "{{ nothing ~ 'x' }}", "{{ nothing.strip() }}", "{% for x in 5 %}{% endfor %}", "{{ 'a' in 5 }}", "{{ -nothing }}", "{{ not nothing }}", "{{ nothing == nothing }}{{ nothing == none }}",
    "{{ tools is defined }}{{ tools is none }}{{ documents is none }}", "{{ -1|string ~ (2 - 3) }}", "{{ not 'a' in 'abc' }}{{ 1 if nothing is not defined else 2 }}", "{{ [1] + [2] == [1, 2] }}{{ {'a': [1]} == {'a': [1]} }}", "{{ '}}' }}{{ \"%}\" }}{# {{ #}{{ '{%' }}", "{ { } } {", "a {{ 1 }}\n", "{% if 1 -%}\n  a\n {%- endif %}\n\n",
]
WORDS = "the man saw a dog", "  two spaces ", "", "line\nbreak\n", "\n\n", "ünïcode 水 🙂", "<|im_end|> </s>", "{{ x }} {% y %}", "'quoted' \"twice\" \\n", "<think>\nhm\n</think>\n\nyes", "STOP", "tab\tand \r\n end"


def draw(rng):
    """A conversation, mostly one that alternates."""
    messages = [{"role": "system", "content": rng.choice(WORDS)}] if rng.random() < 0.4 else []
    for i in range(rng.randrange(1, 6)):
        role = ("user", "assistant")[i % 2] if rng.random() < 0.9 else rng.choice(("user", "assistant", "system", "tool"))
        messages.append({"role": role, "content": "".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 3)))})
    return messages


def render(template, messages, adds):
    try:
        return render_jinja_template([messages], chat_template=template, add_generation_prompt=adds, **SPECIAL)[0][0]
    except (jinja2.TemplateError, TypeError, ZeroDivisionError):
        return None


n_cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10
rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
result = {"made_with": f"transformers {transformers.__version__}, jinja2 {jinja2.__version__}", "special": SPECIAL, "templates": []}
rows = [(name, text, [(m, a) for m in (draw(rng) for _ in range(n_cases)) for a in (True, False)]) for name, text in TEMPLATES.items()]
rows += [(f"snippet {i}", text, [(VALUES, True)]) for i, text in enumerate(SNIPPETS)]
for name, text, cases in rows:
    cases = [{"messages": m, "add_generation_prompt": a, "text": render(text, m, a)} for m, a in cases]
    result["templates"].append({"name": name, "template": text, "cases": cases})
json.dump(result, sys.stdout, ensure_ascii=False, indent=0)
print()
