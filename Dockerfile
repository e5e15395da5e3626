# thresher for a user without rights, on a read-only file system. Commands are in docs/production.md.
FROM python:3.11-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/thresher-*.whl)[sklearn,serve]" && rm -r /wheels
# Compiled code belongs to root, so that whoever runs the image trusts it. A processor of another kind compiles anew.
ENV THRESHER_CACHE_DIR=/opt/thresher
RUN thresher warm --formats svmlight,csv,tsv,jsonl --losses logistic,squared \
 && chmod -R a+rX,go-w /opt/thresher
USER 65534
WORKDIR /data
ENTRYPOINT ["thresher"]
