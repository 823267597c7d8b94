"""Settings: file < environment < flag, and every problem at its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tests.calling import Run, setting
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import Override, check_tree, load_settings, tree_of_file
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.schema import SECRETS, schema
from twinsieve.pipeline.settings.stage_config import scheme_config
from twinsieve.pipeline.settings.values import read_duration_ms, read_size_bytes


def _findings(tmp_path: Path, text: str | bytes, environ: dict[str, str] | None = None) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    _, findings = check_tree(tree_of_file(path), environ)
    return [str(finding).removeprefix(f"{path}:") for finding in findings]


def test_every_problem_is_found_at_its_line_and_column(tmp_path: Path) -> None:
    found = _findings(
        tmp_path,
        "app: we.ibo\n"
        "profil: plain\n"
        "exact: {method: off, window: {age: 24}}\n"
        "near:\n"
        "  similarty: .9\n"
        "  similarity: 85\n"
        "  window: {messages: 5000000000, age: 1:30}\n"
        "  threads: 010\n"
        "input: {topics: [a, posts.unique]}\n"
        "mesages: 4\n",
    )
    assert [line.split(";")[0].split(",")[0] for line in found] == [
        "1:6: app is 'we.ibo'",
        "2:1: unknown key 'profil'",
        "3:17: exact.method is 'off'",
        "3:36: exact.window.age is '24'",
        "5:3: unknown key 'near.similarty'",
        "6:15: near.similarity is 85",
        "7:22: near.window.messages is 5000000000",
        "7:39: near.window.age is '1:30'",
        "8:12: near.threads is '010'",
        "9:21: input.topics.1 is 'posts.unique'",
        "10:1: unknown key 'mesages'",
    ]
    assert "did you mean 'profile'?" in found[1]


def test_a_key_of_an_earlier_version_says_what_to_do(tmp_path: Path) -> None:
    advice = "unknown key 'kafka.delivery'; delivery is always exactly-once now; remove the key"
    assert _findings(tmp_path, "kafka: {delivery: at-least-once}\n") == [f"1:9: {advice}"]
    found = _findings(tmp_path, "", {"TWINSIEVE_KAFKA__DELIVERY": "exactly-once"})
    assert found == [f"TWINSIEVE_KAFKA__DELIVERY: {advice}"]
    assert _findings(tmp_path, "text: {body: letters}\n") == [
        "1:8: unknown key 'text.body'; bodies are always made by the rule `product`; remove the key"
    ]


def test_text_that_yaml_would_guess_at_means_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("exact: {error_rate: 1e-6}\nnear: {differences: off}\ninput: {text_field: yes}\n")
    settings = load_settings(path)
    assert settings.exact.error_rate == 1e-6
    assert settings.near.differences == "off"
    assert settings.input.text_field == ("yes",)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("near: {similarity: 0.8}\nnear: {similarity: 0.9}\n", "2:1: near is given twice"),
        ("near:\n\tsimilarity: 1\n", "2:1: a tab stands where blanks belong"),
        ("- a\n", "1:1: is not a mapping"),
        ("near: 5\n", "1:7: near is '5'"),
        ("near:\n", "1:6: near has no value"),
        ("scope: tenant\n", "1:8: scope is 'tenant'"),
        ("app: [x]\n", "1:6: app is a list"),
        ("<<: {app: x}\n", "1:1: merge keys are not read"),
        ("app: a\x07b\n", "1:7: YAML forbids the character U+0007"),
        (b"app: a\nprofile: \xff\n", "2:10: is not UTF-8"),
        ("digest: {seed: 5}\n", "1:10: digest.seed is a secret"),
        ("text: {drop: ['(a']}\n", "1:15: text.drop.0 is '(a'"),
        ("text: {drop: ['(?=x)']}\n", "1:15: text.drop.0 is '(?=x)'"),
        ("text: {drop: ['b*']}\n", "1:15: text.drop.0 is 'b*'"),
        ("profile: news\n", "1:10: profile is 'news'"),
        ("text: {compare: [urls]}\n", "1:18: text.compare.0 is 'urls'"),
        ("text: {compare: [links, links]}\n", "1:17: text.compare names 'links' twice"),
        ("text: {compare: [links]}\nnear: {differences: off}\n", "1:17: text.compare needs near.differences: guards or full"),
        ("text: {compare: [links]}\nnear: {method: hamming}\n", "1:17: text.compare does not go with near.method: hamming"),
        ("text: {compare: [links]}\nnear: {method: signatures}\n", "1:17: text.compare does not go with near.method: signatures"),
        ("near: {method: signatures, signature: {hashes: 17}}\n", "1:48: near.signature.hashes is 17"),
        ("near: {method: signatures, signature: {kind: sentences, share: 4}}\n", "1:64: near.signature.share is 4"),
        ("near: {method: signatures, signature: {kind: imatch, share: 2}}\n", "1:61: near.signature.share is 2"),
        ("near: {method: signatures, signature: {kind: imatch, rarest: 2, commonest: 3}}\n", "1:62: near.signature.rarest is 2"),
        ("near: {method: signatures, signature: {rarest: 9}}\n", "1:48: near.signature.rarest is for kind: imatch"),
        ("near: {method: signatures, signature: {commonest: x}}\n", "1:51: near.signature.commonest is 'x'"),
        ("near: {method: signatures, signature: {kind: sentences, cut: length}}\n", "1:62: near.signature.cut is for kind: segments"),
        ("near: {segment: 1000}\n", "1:17: near.segment is 1000"),
        ("near: {segment: 0}\n", "1:17: near.segment is 0"),
        ("near: {segment: 16000001}\n", "1:17: near.segment is 16000001"),
        ("near: {method: signatures, segment: 5000}\n", "1:37: near.segment is for near.method: text"),
        ("near: {method: hamming}\nstate: {memory: 1GiB}\n", "2:17: state.memory is for near.method: text"),
        ("state: {memory: 8}\n", "1:17: state.memory is '8'"),
        ("state: {memory: 0GiB}\n", "1:17: state.memory is 0GiB"),
        ("exact: {method: none}\nnear: {method: none}\n", "1:17: exact.method is none and so is near.method"),
        ("http: {listen: 8080}\n", "1:16: http.listen is '8080'"),
        ("http: {listen: 'localhost:http'}\n", "1:16: http.listen is 'localhost:http'"),
        ("http: {listen: '127.0.0.1:99999'}\n", "1:16: http.listen is '127.0.0.1:99999'"),
        ("http: {listen: ':8080'}\n", "1:16: http.listen is ':8080'"),
        ("http: {pages: 8081}\n", "1:15: http.pages is '8081'"),
        ("http: {pages: 'http://127.0.0.1:8081/'}\n", "1:15: http.pages is 'http://127.0.0.1:8081/'"),
        ("http: {pages: '127.0.0.1:8080'}\n", "1:15: http.pages is '127.0.0.1:8080'"),
        ("near: {distances: {8: 13}, method: hamming}\n", "1:23: near.distances.8 is 13"),
        ("near: {distances: {8: 9}, method: hamming}\n", "1:23: near.distances.8 is 9"),
        ("near: {distances_by_field: {text: 3}}\n", "1:28: near.distances_by_field is for near.method: hamming"),
        ("near: {method: hamming, distances_by_field: {title: 3, body: 3}}\ninput: {text_field: [title, text]}\n", "1:45: near.distances_by_field names 'body'"),
        ("near: {method: hamming, distances_by_field: {a: 3, b: 3, c: 3}}\ninput: {text_field: [a, b, c]}\n", "1:45: near.distances_by_field names 3 fields"),
        ("near: {method: hamming, distances_by_field: {a: 3, b: 9}}\ninput: {text_field: [a, b]}\n", "1:55: near.distances_by_field.b is 9"),
        ("near: {method: hamming, distances: {8: 2}, distances_by_field: {text: 3}}\n", "1:36: near.distances does nothing beside near.distances_by_field"),
        ("near: {method: hamming, distances_by_field: {a: 3}}\ninput: {text_field: [a, b, a]}\n", "2:21: input.text_field names a field twice"),
        ("features: {kind: keywords, weights: tfidf, min_features: 11}\nnear: {method: hamming}\n", "1:58: features.min_features is 11"),
        ("near: {method: hamming, candidates: scan, blocks: 5}\n", "1:51: near.blocks is 5"),
        ("near: {method: hamming, distances: {8: 5}, blocks: 5}\n", "1:52: near.blocks is 5"),
        ("kafka: {session_timeout: 6m}\n", "1:26: kafka.session_timeout is above 5m"),
        ("kafka: {session_timeout: 999ms}\n", "1:26: kafka.session_timeout is 999 ms"),
        ("kafka: {answer_timeout: 1ms}\n", "1:25: kafka.answer_timeout is 1 ms"),
        ("kafka: {answer_timeout: 0ms}\n", "1:25: kafka.answer_timeout is '0ms'; write auto"),
        ("kafka: {transaction_timeout: 0s}\n", "1:30: kafka.transaction_timeout is 0 ms"),
        ("kafka: {request_timeout: 0s}\n", "1:26: kafka.request_timeout is 0 ms"),
        ("kafka: {idle_report: 0s}\n", "1:22: kafka.idle_report is 0 ms"),
        ("app: weibo-shadow\n", "1:6: app is 'weibo-shadow'"),
        ("near: {window: {age: 0s}}\n", "1:22: near.window.age is 0s, so whatever has a time would be forgotten"),
        ("exact: {window: {age: 0ms}}\n", "1:23: exact.window.age is 0s, so"),
        ("scope: [a, b, a]\n", "1:8: scope names 'a' twice; remove one"),
        ("exact: {fields: [id, id]}\n", "1:17: exact.fields names 'id' twice; remove one"),
        ("near.similarity: 0.8\n", "1:1: unknown key 'near.similarity'; write it nested: near: {similarity: …}"),
        ("near.window.age: 1h\n", "1:1: unknown key 'near.window.age'; write it nested: near: {window: {age: …}}"),
        ("input: {text_field: ''}\n", "1:21: input.text_field is empty; give it a value or remove the key"),
        ("near: {bucket_load: many}\n", "1:21: near.bucket_load is 'many', which is not a number; write it as 8.4"),
        ("digest: {seed_file: missing}\n", "1:21: digest.seed_file names 'missing'"),
    ],
)  # fmt: skip
def test_a_trap_is_one_finding_at_its_place(tmp_path: Path, text: str | bytes, begins: str) -> None:
    (found,) = _findings(tmp_path, text)
    assert found.startswith(begins)


def test_aliases_of_aliases_end_soon(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, after in zip("abcdefg", "bcdefgh", strict=True)
    )
    found = _findings(tmp_path, bomb)
    assert any("has more than 20000 values, aliases counted" in line for line in found)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("app: [" + "x," * 500_000 + "x]\n", "1:40001"),
        ("app:\n" + "- x\n" * 250_000, "19999:3"),
        ("".join(f"k{number}: 1\n" for number in range(90_000)), "10000:8"),
    ],
)
def test_nodes_are_counted_before_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, place: str
) -> None:
    read = 0
    state_of = yaml.SafeLoader.get_event

    def counted(loader: yaml.SafeLoader) -> yaml.Event:
        nonlocal read
        read += 1
        return state_of(loader)

    monkeypatch.setattr(yaml.SafeLoader, "get_event", counted)
    monkeypatch.setattr(yaml.SafeLoader, "compose_node", None)
    assert _findings(tmp_path, text) == [f"{place}: has more than 20000 keys and values"]
    assert read < 20_010


def test_an_alias_inside_itself_is_a_finding(tmp_path: Path) -> None:
    found = _findings(tmp_path, "near: &a\n  x: *a\n")
    assert any("an alias stands for something that contains the alias itself" in line for line in found)


def test_deep_nesting_is_a_finding(tmp_path: Path) -> None:
    assert _findings(tmp_path, "app: " + "[" * 5000) == ["1:25: is nested deeper than 20 levels"]


def test_a_tag_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("app: !!python/object/apply:os.mkdir made\n")
    assert load_settings(path).app == "made"


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_of_a_mebibyte_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(yaml, "parse", None)
    monkeypatch.setattr(yaml, "compose", None)
    assert _findings(tmp_path, "#" * ((1 << 20) + more)) == [
        "1:1: has 1 MiB or more; settings are a page or two"
    ]


def test_flag_wins_over_environment_wins_over_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("near: {similarity: 0.7, window: {messages: 5, age: 1h}, bucket_load: 4}\nscope: [a]\n")
    environ = {
        "TWINSIEVE_NEAR__SIMILARITY": "0.8",
        "TWINSIEVE_NEAR__WINDOW__MESSAGES": "6",
        "TWINSIEVE_SCOPE": "b, c",
    }
    settings = load_settings(path, environ, [Override("near.similarity", "0.9", "--similarity")])
    assert settings.near.similarity == 9_000
    assert (settings.near.window.messages, settings.near.window.age_ms) == (6, 3_600_000)
    assert settings.near.bucket_load == 4
    assert settings.scope == ("b", "c")


@pytest.mark.parametrize(
    ("key", "texts", "expected"),
    [
        ("scope", ["a,b", "a, b", "[a, b]", ' ["a", b]'], ("a", "b")),
        ("scope", ["", "[]"], ()),
        ("near.distances", ["8:3,64:5", "{8: 3, 64: 5}"], {8: 3, 64: 5}),
    ],
)
def test_lists_and_mappings_of_flags_are_read_as_in_the_file(
    key: str, texts: list[str], expected: object
) -> None:
    for text in texts:
        found: object = load_settings(None, {}, [Override(key, text, "--set")])
        for part in key.split("."):
            found = getattr(found, part)
        assert found == expected


def test_a_flag_that_is_half_a_list_is_refused() -> None:
    for text in ("[a, b", "[a] b", "{8 3", "[a]\nb: c: d"):
        _, found = check_tree(tree_of_file(None), {}, [Override("scope", text, "--set scope")])
        assert [str(one).startswith("--set scope: ") for one in found] == [True]


def test_what_comes_from_outside_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("near: {similarity: 0.7}\n")
    flags = [Override("near.similarity", "x", "--similarity")]
    _, found = check_tree(tree_of_file(path), {"TWINSIEVE_NEAR__THREAD": "4"}, flags)
    assert [str(one) for one in found] == [
        "--similarity: near.similarity is 'x', which is not a number; write it as 0.85",
        "TWINSIEVE_NEAR__THREAD: unknown key 'near.thread'; did you mean 'threads'?",
    ]


@pytest.mark.parametrize("method", ["mmh3", "blake2b"])
def test_a_seed_may_have_64_bits_with_either_method(tmp_path: Path, method: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"digest: {{method: {method}}}\n")
    for seed in (2**32, 2**63 + 1, 2**64 - 1):
        assert load_settings(path, {"TWINSIEVE_DIGEST__SEED": str(seed)}).digest.seed == seed
    for wrong in ("-1", f"{2**64}"):
        with pytest.raises(ConfigError, match=r"digest\.seed"):
            load_settings(path, {"TWINSIEVE_DIGEST__SEED": wrong})


def test_a_secret_is_read_from_environment_or_file_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    (tmp_path / "seed").write_text("12345678901\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "digest: {method: blake2b, seed_file: seed}\n"
        "kafka: {security: {protocol: sasl_ssl, username: u, password_file: word}}\n"
    )
    settings = load_settings(path)
    assert settings.digest.seed == 12345678901
    assert settings.kafka.security.password == SecretStr("hunter2")
    assert "hunter2" not in repr(settings)
    assert "12345678901" not in repr(settings)
    settings = load_settings(path, {"TWINSIEVE_KAFKA__SECURITY__PASSWORD": "other"})
    assert settings.kafka.security.password == SecretStr("other")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {"TWINSIEVE_DIGEST__SEED": "s3cret"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CONFIG", "name the settings file with -c"),
        ("NEAR", "near holds other keys, as TWINSIEVE_NEAR__METHOD"),
    ],
)
def test_a_variable_that_would_set_nothing_is_a_finding(name: str, said: str) -> None:
    _, found = check_tree(tree_of_file(None), {f"TWINSIEVE_{name}": "0.9"})
    assert [str(one) for one in found] == [f"TWINSIEVE_{name}: sets nothing; {said}"]


@pytest.mark.parametrize("name", ["WINDOW__AGE", "NEAR__SIMILARTY", "KAFKA__POLL__MESSAGES"])
def test_a_variable_with_a_dot_that_is_no_key_is_a_finding(name: str) -> None:
    _, found = check_tree(tree_of_file(None), {f"TWINSIEVE_{name}": "17"})
    (line,) = [str(one) for one in found]
    assert line.startswith(f"TWINSIEVE_{name}: unknown key {name.lower().replace('__', '.')!r}; ")


def test_any_other_variable_belongs_to_another_program() -> None:
    others = ("PORT", "SERVICE_HOST", "SERVICE_PORT", "PORT_8080_TCP_ADDR", "DATA", "NEAR_SERVICE_HOST")
    assert check_tree(tree_of_file(None), {f"TWINSIEVE_{name}": "x" for name in others})[1] == []


def test_exact_fields_switch_near_off_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("exact: {fields: [id]}\n")
    assert load_settings(path).near.method == "none"
    path.write_text("exact: {fields: [id]}\nnear: {method: text}\n")
    assert load_settings(path).near.method == "text"


def test_a_file_named_in_settings_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("的\n")
    path = tmp_path / "s.yaml"
    path.write_text("features: {stop_words_file: words}\n")
    assert load_settings(path).features.stop_words_file == str(tmp_path / "words")


def test_a_file_that_a_flag_or_variable_names_lies_where_one_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "words").write_text("的\n")
    path = tmp_path / "conf" / "s.yaml"
    monkeypatch.chdir(tmp_path)
    for text in ("profile: plain\n", "features: {stop_words_file: none}\n"):
        path.write_text(text)
        named = Override("features.stop_words_file", "words", "--set features.stop_words_file")
        assert load_settings(path, {}, [named]).features.stop_words_file == str(tmp_path / "words")
        environ = {"TWINSIEVE_FEATURES__STOP_WORDS_FILE": "words"}
        assert load_settings(path, environ).features.stop_words_file == str(tmp_path / "words")


def _with_file(key: str, path: Path) -> Settings:
    return load_settings(None, {}, [Override(f"features.{key}", str(path), "--set")])


@pytest.mark.parametrize("key", ["dictionary_file", "stop_words_file", "idf_file"])
def test_a_list_of_words_that_never_ends_is_refused(tmp_path: Path, key: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", str(tmp_path / "pipe")):
        _, found = check_tree(tree_of_file(None), {}, [Override(f"features.{key}", name, "--set")])
        assert [str(one) for one in found] == [
            f"--set: features.{key} names {name!r}, which cannot be read: is not a regular file"
        ]


def test_a_list_of_words_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinsieve.pipeline.settings.stage_config.MAX_LIST_BYTES", 1 << 20)
    (tmp_path / "words").write_text("的\n" * (1 << 18) + "了")
    settings = _with_file("stop_words_file", tmp_path / "words")
    with pytest.raises(ConfigError, match=r"words:1:1: has more than 1 MiB; shorten the list"):
        scheme_config(settings)


def test_a_bad_dictionary_entry_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("方舱医院 120 n\nword abc def\n雷神山\n坏 0\n", "utf-8")
    settings = _with_file("dictionary_file", tmp_path / "own.txt")
    with pytest.raises(ConfigError) as caught:
        scheme_config(settings)
    assert [finding.split(" is not ")[0] for finding in caught.value.findings] == [
        f"{tmp_path / 'own.txt'}:2:1: 'word abc def'",
        f"{tmp_path / 'own.txt'}:4:1: '坏 0'",
    ]


def test_flags_that_contradict_each_other_are_refused_and_named() -> None:
    flags = [Override("near.similarity", "0.99", "--similarity"), Override("near.similarity", "0.8", "--set")]
    _, found = check_tree(tree_of_file(None), {}, flags)
    assert [str(one) for one in found] == [
        "--set: sets near.similarity to '0.8', but --similarity sets it to '0.99'; leave one of the two out"
    ]
    assert check_tree(tree_of_file(None), {}, [flags[0], flags[0]])[1] == []


@pytest.mark.parametrize(
    "words",
    [
        ("-c", "config/news.yaml", "-c", "config/microblog.yaml"),
        ("--similarity", "0.8", "--similarity", "0.9"),
        (*setting("near.similarity=0.8"), "--similarity", "0.9"),
        setting("near.threads=1", "near.threads=2"),
    ],
)
def test_an_option_given_twice_is_no_quiet_choice(run: Run, words: tuple[str, ...]) -> None:
    ran = run("lint", *words)
    assert (ran.code, ran.out.count("\n") + ran.err.count("\n")) == (2, 1)
    said = ran.out + ran.err
    assert all(word.partition("=")[2] or word in said for word in (words[1], words[3]))
    assert run("lint", "--similarity", "0.9", "--similarity", "0.9").code == 0


@pytest.mark.parametrize("key", sorted(SECRETS))
def test_a_secret_is_refused_on_the_command_line_and_not_repeated(run: Run, key: str) -> None:
    ran = run("lint", *setting(f"{key}=5551212"))
    variable = f"TWINSIEVE_{key.replace('.', '__').upper()}"
    assert ran.code == 2
    assert ran.out == (
        f"--set {key}: {key} is a secret, and other users can see command lines; "
        f"set {variable} or name a file in {key}_file\n"
    )


def test_secrets_are_keys_with_a_file_beside_them() -> None:
    assert all(key in schema() and f"{key}_file" in schema() for key in SECRETS)


@given(st.integers(0, 10**9), st.sampled_from(["ms", "s", "m", "h", "d", "w"]))
def test_durations_are_exact(amount: int, unit: str) -> None:
    seconds = {"ms": None, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}[unit]
    assert read_duration_ms(f"{amount}{unit}") == (amount if seconds is None else amount * seconds * 1000)


def test_sizes_tell_thousand_from_1024() -> None:
    assert [read_size_bytes(text) for text in ("1kB", "1KiB", "1.5MiB", "7 B")] == [1000, 1024, 1_572_864, 7]


@given(st.binary(max_size=300))
def test_no_bytes_make_lint_fail(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("s") / "s.yaml"
    path.write_bytes(content)
    settings, findings = check_tree(tree_of_file(path))
    assert isinstance(settings, Settings) or findings


def test_the_order_of_what_is_compared_is_no_other_scheme(tmp_path: Path) -> None:
    configs = []
    for number, written in enumerate(("[tags, links]", "[links, tags]", "[]")):
        path = tmp_path / f"{number}.yaml"
        path.write_text(f"text: {{compare: {written}}}\n")
        configs.append(scheme_config(load_settings(path)))
    assert configs[0] == configs[1] != configs[2]


def test_a_line_of_several_words_is_no_stop_word(tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_text("的\n# a comment\nof the\n\n了\t7\n", "utf-8")
    settings = load_settings(
        None, {}, [Override("features.stop_words_file", str(tmp_path / "stop.txt"), "--set")]
    )
    with pytest.raises(ConfigError) as caught:
        scheme_config(settings)
    assert caught.value.findings == [
        f"{tmp_path / 'stop.txt'}:3:3: is not one word; write one word a line",
        f"{tmp_path / 'stop.txt'}:5:2: is not one word; write one word a line",
    ]


def test_settings_of_keywords_are_refused_at_their_place(tmp_path: Path) -> None:
    said = "no flag of jieba, as n, ns, v or eng are; correct it, or give it to a word of dictionary_file"
    text = "features:\n  kind: keywords\n  parts_of_speech: [n, noun, v]\n  drop_parts_of_speech: [v, U]\n  min_word: 0\n"
    assert _findings(tmp_path, text.replace("  min_word: 0\n", "")) == [
        f"3:24: features.parts_of_speech.1 is 'noun', {said}",
        "4:26: features.drop_parts_of_speech.0 is 'v', which features.parts_of_speech names too; "
        "remove it from one of them",
        f"4:29: features.drop_parts_of_speech.1 is 'U', {said}",
    ]
    assert _findings(tmp_path, text)[-1].startswith("5:13: features.min_word is 0; it is at least 1")
    assert _findings(tmp_path, "features: {weights: scale5}\n") == [
        "1:21: features.weights is scale5, which is for kind: keywords, not chars; use tf"
    ]
    assert _findings(tmp_path, "features: {kind: keywords, weights: none}\n") == []


def test_a_flag_may_come_from_the_own_dictionary(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("雷神山医院 100 hosp\n", "utf-8")
    text = "features: {kind: keywords, dictionary_file: own.txt, parts_of_speech: [hosp]}\n"
    (tmp_path / "s.yaml").write_text(text)
    assert scheme_config(load_settings(tmp_path / "s.yaml")).features.parts_of_speech == ("hosp",)
    found = _findings(tmp_path, text.replace("[hosp]", "[n, hops]"))
    assert [finding.partition(",")[0] for finding in found] == ["1:75: features.parts_of_speech.1 is 'hops'"]


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "[::]", "192.0.2.1", "pages.example", "127.0.0.2", "[::ffff:127.0.0.1]", "*"]
)
def test_status_pages_on_another_host_than_loopback_are_refused_at_their_line(
    tmp_path: Path, host: str
) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"app: a\nhttp:\n  pages: '{host}:9000'\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(path)
    assert str(refused.value) == (
        f"{path}:3:10: http.pages is '{host}:9000'; these pages have no login, so they are for this machine "
        "alone: write 127.0.0.1:9000 (or localhost, or [::1]), and reach them from elsewhere by "
        "`ssh -L 9000:127.0.0.1:9000 HOST`"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_status_pages_may_listen_on_loopback(tmp_path: Path, host: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(f"http: {{pages: '{host}:9000'}}\n")
    assert load_settings(path).http.pages_address == (host.strip("[]"), 9000)


@pytest.mark.parametrize(
    ("region", "is_one"),
    [
        ("eu-central-1", True),
        ("us-gov-west-1", True),
        ("cn-north-1", True),
        ("Frankfurt", False),
        ("evil.host/x-1", False),
    ],
)
def test_a_region_of_aws_is_one(tmp_path: Path, region: str, is_one: bool) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(
        f"kafka: {{security: {{protocol: sasl_ssl, mechanism: oauthbearer, aws_region: '{region}'}}}}\n"
    )
    if is_one:
        assert load_settings(path).kafka.security.aws_region == region
    else:
        with pytest.raises(ConfigError, match=r"kafka\.security\.aws_region.*is no region of AWS"):
            load_settings(path)


@pytest.mark.parametrize(
    ("written", "key", "says"),
    [
        ("mechanism: oauthbearer", "token_endpoint", "is missing; oauthbearer needs the address"),
        (
            "mechanism: oauthbearer\n    token_endpoint: login.example",
            "token_endpoint",
            "write https://host/path",
        ),
        (
            "mechanism: oauthbearer\n    token_endpoint: https://me:secret@login.example/",
            "token_endpoint",
            "without a login",
        ),
        ("mechanism: plain\n    token_scope: kafka", "token_scope", "it is for oauthbearer over sasl_ssl"),
        (
            "mechanism: plain\n    aws_region: eu-central-1",
            "aws_region",
            "it is for oauthbearer over sasl_ssl",
        ),
        ("mechanism: oauthbearer\n    aws_region: eu-central-1", "username", "is set beside aws_region"),
    ],
)
def test_a_login_by_tokens_is_whole(tmp_path: Path, written: str, key: str, says: str) -> None:
    text = f"kafka:\n  security:\n    protocol: sasl_ssl\n    username: me\n    {written}\n"
    (found,) = _findings(tmp_path, text)
    assert f"kafka.security.{key}" in found
    assert says in found
    assert "secret" not in found
