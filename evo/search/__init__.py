"""MAP-Elites over programs: vocabulary, emitter, archive, memory of results, and the loop.

Never sees CUDA, files or YAML.
"""
